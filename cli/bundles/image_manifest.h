// The manifests of images in registries.
#ifndef MUSTER_CLI_BUNDLES_IMAGE_MANIFEST_H_
#define MUSTER_CLI_BUNDLES_IMAGE_MANIFEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

// Registries accept manifests of up to 4 MiB.
inline constexpr size_t kMaxManifest = size_t{4} << 20;
// References of one manifest, the same blob counted each time.
inline constexpr size_t kMaxReferences = 10'000;

struct BlobReference {
  std::string sha256;  // 64 lower-case hex digits
  int64_t size = 0;    // bytes
};

struct ImageManifest {
  std::vector<BlobReference> manifests;  // of the platforms, if this is an index of them
  std::vector<BlobReference> blobs;      // configuration and layers, if it is the image of one
};

// Returns what a manifest refers to: an image or an index of the OCI image format, or the image
// manifest (version 2, schema 2) or manifest list of Docker. Nothing for another text, one that is
// larger than kMaxManifest, or has more than kMaxReferences, and for an index of indexes.
// Sources: https://github.com/opencontainers/image-spec and
// https://distribution.github.io/distribution/spec/manifest-v2-2/
std::optional<ImageManifest> ParseImageManifest(std::string_view text);

// Returns the digits of "sha256:DIGEST" in lower-case hex; nothing for another text.
std::optional<std::string> Sha256OfDigest(std::string_view digest);

// Returns whether `text` is 64 lower-case hex digits.
bool IsSha256Hex(std::string_view text);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BUNDLES_IMAGE_MANIFEST_H_
