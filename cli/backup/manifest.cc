#include "cli/backup/manifest.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr char kManifestFile[] = "manifest.json";
constexpr char kSumsFile[] = "SHA256SUMS";
constexpr std::string_view kContent = "home/";
constexpr size_t kMaxSums = size_t{4} << 30;  // more than 10,000,000 files
constexpr size_t kMaxManifest = size_t{1} << 20;
constexpr size_t kHexSize = 2 * kSha256Size;

std::string SumLine(std::string_view sha256, std::string_view path) {
  return absl::StrCat(ToAbsl(sha256), "  ", ToAbsl(path), "\n");
}

bool StaysInFolder(const std::filesystem::path& path) {
  return path.is_relative() && !path.empty() &&
         std::none_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
}

// Returns the digests by the paths in the backup.
absl::StatusOr<std::map<std::string, std::string>> ReadSums(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kSumsFile);
  const auto text = ReadFileBounded(path, kMaxSums);
  if (absl::IsNotFound(text.status())) {
    std::error_code ignored;
    return errors::NotABackup(folder, std::filesystem::exists(folder, ignored)
                                          ? absl::StrCat("it has no ", kSumsFile)
                                          : "it does not exist");
  }
  if (!text.ok()) return text.status();
  std::map<std::string, std::string> sums;
  for (const absl::string_view piece : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const std::string_view line = ToStd(piece);
    const std::string_view sha256 = line.substr(0, kHexSize);
    const bool valid = line.size() > kHexSize + 2 && FromHex(sha256).has_value() &&
                       StaysInFolder(line.substr(kHexSize + 2));
    if (!valid) return errors::BackupDamaged(path, "has an invalid line");
    sums.emplace(line.substr(kHexSize + 2), sha256);
  }
  return sums;
}

}  // namespace

std::string PathInBackup(const std::string& folder, const std::string& path) {
  return absl::StrCat(folder, "/", ToAbsl(kContent), path);
}

absl::Status WriteManifest(const std::string& folder, const Manifest& manifest) {
  const Json json = {
      {"format", kFormat},
      {"version", manifest.version},
      {"time", absl::FormatTime(absl::RFC3339_sec, manifest.time, absl::UTCTimeZone())},
      {"home", manifest.home},
      {"files", manifest.files.size()},
      {"bytes", manifest.bytes},
      {"keys", manifest.keys},
      {"omitted", manifest.omitted}};
  const std::string text =
      json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(folder, "/", kManifestFile), text));
  std::string sums = SumLine(ToHex(Sha256::Of(text)), kManifestFile);
  for (const auto& [path, sha256] : manifest.files) {
    sums += SumLine(sha256, absl::StrCat(ToAbsl(kContent), path));
  }
  return WriteFileAtomically(absl::StrCat(folder, "/", kSumsFile), sums);
}

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  ASSIGN_OR_RETURN(auto sums, ReadSums(folder));
  const std::string path = absl::StrCat(folder, "/", kManifestFile);
  const auto text = ReadFileBounded(path, kMaxManifest);
  if (absl::IsNotFound(text.status()))
    return errors::NotABackup(folder, absl::StrCat("it has no ", kManifestFile));
  if (!text.ok()) return text.status();
  if (sums[kManifestFile] != ToHex(Sha256::Of(*text))) {
    return errors::BackupDamaged(path, "differs from its checksum");
  }
  sums.erase(kManifestFile);
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object() || json.value("format", 0) != kFormat) {
    return errors::NotABackup(
        folder, absl::StrCat(kManifestFile, " has not the format ", kFormat, " of this version"));
  }
  Manifest manifest;
  manifest.version = json.value("version", "");
  manifest.home = json.value("home", "");
  manifest.bytes = json.value("bytes", int64_t{0});
  manifest.keys = json.value("keys", std::vector<std::string>());
  manifest.omitted = json.value("omitted", std::vector<std::string>());
  for (auto& [file, sha256] : sums) {
    if (file.starts_with(kContent)) manifest.files.emplace(file.substr(kContent.size()), sha256);
  }
  if (manifest.files.size() != json.value("files", size_t{0})) {
    return errors::BackupDamaged(absl::StrCat(folder, "/", kSumsFile), "lacks files");
  }
  return manifest;
}

}  // namespace muster::cli
