#include "services/common/templates/template_source.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/sha256.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/templates/files.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxUrl = 1'024;
constexpr std::string_view kKinds[] = {kFolderSource, kZipSource, kTarSource, kGitSource};

bool IsHex(std::string_view text, size_t size) {
  return text.size() == size && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Printable ASCII without blanks: it is one word in every output.
bool IsAddress(std::string_view text) {
  return text.size() <= kMaxUrl && text.starts_with("https://") &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

// The text fields of a source, with their names in a document.
template <typename Source>
auto FieldsOf(Source& source) {
  return std::vector{std::pair("kind", &source.kind()), std::pair("sha256", &source.sha256()),
                     std::pair("url", &source.url()), std::pair("commit", &source.commit()),
                     std::pair("folder", &source.folder())};
}

}  // namespace

std::string SourceDigest(const google::protobuf::RepeatedPtrField<v1::Command::File>& files) {
  Sha256 digest;
  for (const v1::Command::File& file : files) {
    digest.Update(absl::StrCat(file.path(), "\n", SizeOf(file), " ", file.executable() ? "x" : "-",
                               " ", absl::BytesToHexString(DigestOf(file)), "\n"));
  }
  return ToHex(digest.Finish());
}

std::string WhyInvalidSource(const v1::Command::Source& source) {
  if (std::ranges::find(kKinds, source.kind()) == std::end(kKinds)) {
    return "the kind of the source is not folder, zip, tar or git";
  }
  if (!IsHex(source.sha256(), 2 * kSha256Size)) {
    return "the sha256 of the source is not 64 lower-case hex digits";
  }
  if (source.kind() != kGitSource) {
    const bool plain = source.url().empty() && source.commit().empty() && source.folder().empty();
    return plain ? "" : "only a source of kind git has url, commit and folder";
  }
  if (!IsAddress(source.url())) return "the url of the source is not an https:// address";
  if (!IsHex(source.commit(), 40) && !IsHex(source.commit(), 64)) {
    return "the commit of the source is not 40 or 64 lower-case hex digits";
  }
  if (source.folder().empty()) return "";
  const std::string why = WhyInvalidPath(source.folder());
  return why.empty() ? "" : absl::StrCat("the folder of the source ", why);
}

Json SourceToJson(const v1::Command::Source& source) {
  Json json = Json::object();
  for (const auto& [name, value] : FieldsOf(source)) {
    if (!value->empty()) json[name] = *value;
  }
  return json;
}

absl::StatusOr<v1::Command::Source> SourceFromJson(const Json& json) {
  if (!json.is_object()) return absl::InvalidArgumentError("must be an object");
  v1::Command::Source source;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_string()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " must be text"));
    }
    const auto* const field = v1::Command::Source::descriptor()->FindFieldByName(name);
    if (field == nullptr) return absl::InvalidArgumentError(absl::StrCat("no such field: ", name));
    source.GetReflection()->SetString(&source, field, value.get<std::string>());
  }
  if (const std::string why = WhyInvalidSource(source); !why.empty()) {
    return absl::InvalidArgumentError(why);
  }
  return source;
}

}  // namespace muster
