#include "services/common/templates/files.h"

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/printable.h"
#include "services/common/base/sha256.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/templates.h"

namespace muster {
namespace {

constexpr size_t kMaxPath = 1'024;
constexpr size_t kMaxName = 255;  // NAME_MAX of Linux

bool IsPrintable(std::string_view text) {
  while (!text.empty()) {
    const size_t length = PrintableLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

absl::Status Refuse(std::string_view path, std::string_view why) {
  return errors::InvalidFiles(absl::StrCat("\"", Printable(path), "\" ", ToAbsl(why)));
}

// Returns why the content is not as Command.File of jobs.proto describes it; empty if it is.
std::string WhyInvalidContent(const v1::Command::File& file) {
  if (!IsStored(file)) return file.size() == 0 ? "" : "has a size, but no SHA-256";
  if (!file.content().empty()) return "has both a content and its SHA-256";
  if (file.sha256().size() != kSha256Size) return "has no SHA-256 of 32 bytes";
  if (file.size() < 1 || file.size() > kMaxContentSize) {
    return absl::StrCat("has a size that is not 1 to ", kMaxContentSize);
  }
  return "";
}

}  // namespace

std::string WhyInvalidPath(std::string_view path) {
  if (path.size() > kMaxPath) return absl::StrCat("has more than ", kMaxPath, " bytes");
  if (!IsPrintable(path)) return "has a control character, or is not UTF-8";
  for (const absl::string_view name : absl::StrSplit(ToAbsl(path), '/')) {
    if (name.empty() || name == "." || name == "..") {
      return "is not a relative path without \".\" and \"..\"";
    }
    if (name.size() > kMaxName) return absl::StrCat("has a name of more than ", kMaxName, " bytes");
  }
  return "";
}

int64_t SizeOf(const v1::Command::File& file) {
  return IsStored(file) ? file.size() : static_cast<int64_t>(file.content().size());
}

std::string DigestOf(const v1::Command::File& file) {
  return IsStored(file) ? file.sha256() : DigestBytes(Sha256::Of(file.content()));
}

int64_t StoredBytes(const google::protobuf::RepeatedPtrField<v1::Command::File>& files) {
  int64_t bytes = 0;
  for (const v1::Command::File& file : files) {
    if (IsStored(file)) bytes += file.size();
  }
  return bytes;
}

absl::Status CheckFiles(const google::protobuf::RepeatedPtrField<v1::Command::File>& files) {
  if (files.size() > kMaxFiles) {
    return errors::InvalidFiles(absl::StrCat("there are more than ", kMaxFiles));
  }
  const std::string* before = nullptr;
  std::set<std::string, std::less<>> paths;
  for (const v1::Command::File& file : files) {
    const std::string& path = file.path();
    if (const std::string why = WhyInvalidPath(path); !why.empty()) return Refuse(path, why);
    if (const std::string why = WhyInvalidContent(file); !why.empty()) return Refuse(path, why);
    if (before != nullptr && *before >= path) {
      return Refuse(path, "is not in the order of the paths, or is there twice");
    }
    before = &path;
    // A folder sorts before its files, so it is among the paths already if it is a file.
    for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
      if (paths.contains(std::string_view(path).substr(0, end))) {
        return Refuse(path, "is below a file");
      }
    }
    paths.insert(path);
  }
  if (StoredBytes(files) > kMaxContentSize) {
    return errors::InvalidFiles(
        absl::StrCat("they have more than ", kMaxContentSize >> 20, " MiB together"));
  }
  return absl::OkStatus();
}

}  // namespace muster
