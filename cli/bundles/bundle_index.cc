#include "cli/bundles/bundle_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/bundles/image_manifest.h"
#include "cli/output/format.h"
#include "nlohmann/json.hpp"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/version.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "muster-bundle";
constexpr int kVersion = 1;
constexpr std::string_view kDocumentSuffix = ".json";

bool IsDocumentPath(std::string_view path, std::string_view folder) {
  return IsDocumentVersion(DocumentOf(path, folder));
}

bool IsMember(const BundleMember& member) {
  const std::string_view path = member.path;
  if (path.starts_with(kBundleBlobs)) {
    return path.substr(std::string_view(kBundleBlobs).size()) == member.sha256;
  }
  return path == kLayoutIndexPath || path == kLayoutPath || IsDocumentPath(path, kTypeFolder) ||
         IsDocumentPath(path, kTemplateFolder);
}

std::optional<BundleMember> MemberOf(const Json& json) {
  if (!json.is_object() || json.size() != 3) return std::nullopt;
  const auto path = json.find("path");
  const auto size = json.find("size");
  const auto sha256 = json.find("sha256");
  if (path == json.end() || !path->is_string() || size == json.end() ||
      !size->is_number_unsigned() || sha256 == json.end() || !sha256->is_string()) {
    return std::nullopt;
  }
  const auto bytes = size->get<uint64_t>();
  if (bytes > static_cast<uint64_t>(kMaxBundle)) return std::nullopt;
  BundleMember member{path->get<std::string>(), static_cast<int64_t>(bytes),
                      sha256->get<std::string>()};
  if (!IsSha256Hex(member.sha256)) return std::nullopt;
  return member;
}

}  // namespace

bool IsDocumentVersion(std::string_view text) {
  const size_t at = text.find('@');
  return at != std::string_view::npos && ValidateName("a document", text.substr(0, at)).ok() &&
         IsVersion(text.substr(at + 1));
}

std::string_view DocumentOf(std::string_view path, std::string_view folder) {
  if (!path.starts_with(folder) || !path.ends_with(kDocumentSuffix)) return "";
  path.remove_prefix(folder.size());
  if (path.size() <= kDocumentSuffix.size()) return "";
  path.remove_suffix(kDocumentSuffix.size());
  return path;
}

std::string BundleIndexText(std::vector<BundleMember> members) {
  std::ranges::sort(members, {}, &BundleMember::path);
  Json list = Json::array();
  for (const BundleMember& member : members) {
    list.push_back({{"path", member.path}, {"size", member.size}, {"sha256", member.sha256}});
  }
  const Json json = {{"format", kFormat}, {"version", kVersion}, {"members", std::move(list)}};
  return json.dump(1) + "\n";
}

absl::StatusOr<std::vector<BundleMember>> ParseBundleIndex(std::string_view text,
                                                           const std::string& file) {
  const auto unusable = [&](std::string_view why) { return errors::BundleUnusable(file, why); };
  if (text.size() > kMaxIndex) {
    return unusable(absl::StrCat("its index is larger than ", kMaxIndex >> 20, " MiB"));
  }
  const auto [json, fault] = ParseExactJson<Json>(text);
  if (fault != JsonFault::kNone || !json.is_object() || !json.contains("format") ||
      json["format"] != kFormat) {
    return unusable("it does not begin with the index of a bundle");
  }
  if (!json.contains("version") || json["version"] != kVersion) {
    return unusable("its version is unknown to this program; use a newer one");
  }
  const auto list = json.find("members");
  if (list == json.end() || !list->is_array()) return unusable("its index has no members");
  if (list->size() > kMaxMembers) {
    return unusable(absl::StrCat("it has more than ", kMaxMembers, " members"));
  }
  std::vector<BundleMember> members;
  int64_t total = 0;
  for (const Json& entry : *list) {
    auto member = MemberOf(entry);
    if (!member) return unusable("a member of its index has no valid path, size and SHA-256");
    if (!IsMember(*member)) {
      return unusable(absl::StrCat("its index names \"", Printable(member->path),
                                   "\", which is no member of a bundle"));
    }
    if (!members.empty() && members.back().path >= member->path) {
      return unusable("the members of its index are not sorted, or one of them occurs twice");
    }
    total += member->size;
    if (total > kMaxBundle) return unusable("its members are larger than 1 TiB");
    members.push_back(*std::move(member));
  }
  return members;
}

}  // namespace muster::cli
