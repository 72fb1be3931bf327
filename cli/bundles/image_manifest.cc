#include "cli/bundles/image_manifest.h"

#include <algorithm>
#include <utility>

#include "nlohmann/json.hpp"
#include "services/common/templates/exact_json.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kAlgorithm = "sha256:";
constexpr size_t kDigits = 64;
constexpr std::string_view kIndexTypes[] = {
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json"};

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<BlobReference> ReferenceOf(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  auto sha256 = Sha256OfDigest(TextOf(json, "digest"));
  const auto size = json.find("size");
  if (!sha256 || size == json.end() || !size->is_number_unsigned()) return std::nullopt;
  const auto bytes = size->get<uint64_t>();
  if (bytes > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return BlobReference{*std::move(sha256), static_cast<int64_t>(bytes)};
}

bool AddReferences(const Json& list, std::vector<BlobReference>* references) {
  if (!list.is_array() || list.size() > kMaxReferences) return false;
  for (const Json& entry : list) {
    auto reference = ReferenceOf(entry);
    if (!reference) return false;
    references->push_back(*std::move(reference));
  }
  return true;
}

bool IsIndexOfIndexes(const Json& manifests) {
  return std::ranges::any_of(manifests, [](const Json& entry) {
    return std::ranges::find(kIndexTypes, TextOf(entry, "mediaType")) != std::end(kIndexTypes);
  });
}

}  // namespace

bool IsSha256Hex(std::string_view text) {
  return text.size() == kDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::optional<std::string> Sha256OfDigest(std::string_view digest) {
  if (!digest.starts_with(kAlgorithm)) return std::nullopt;
  digest.remove_prefix(kAlgorithm.size());
  if (!IsSha256Hex(digest)) return std::nullopt;
  return std::string(digest);
}

std::optional<ImageManifest> ParseImageManifest(std::string_view text) {
  if (text.size() > kMaxManifest) return std::nullopt;
  const auto [json, fault] = ParseExactJson<Json>(text);
  if (fault != JsonFault::kNone || !json.is_object()) return std::nullopt;
  const auto version = json.find("schemaVersion");
  if (version == json.end() || *version != 2) return std::nullopt;
  const auto manifests = json.find("manifests");
  const auto config = json.find("config");
  const auto layers = json.find("layers");
  ImageManifest manifest;
  if (manifests != json.end()) {
    // A text that is both would be read differently by other programs.
    if (config != json.end() || layers != json.end()) return std::nullopt;
    if (!AddReferences(*manifests, &manifest.manifests)) return std::nullopt;
    if (IsIndexOfIndexes(*manifests)) return std::nullopt;
    return manifest;
  }
  if (config == json.end() || layers == json.end()) return std::nullopt;
  auto reference = ReferenceOf(*config);
  if (!reference) return std::nullopt;
  manifest.blobs.push_back(*std::move(reference));
  if (!AddReferences(*layers, &manifest.blobs)) return std::nullopt;
  return manifest;
}

}  // namespace muster::cli
