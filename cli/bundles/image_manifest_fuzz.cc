// Reads any bytes as the manifest of an image. Its references have plain digests, and are bounded.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "cli/bundles/image_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto manifest =
      muster::cli::ParseImageManifest({reinterpret_cast<const char*>(data), size});
  if (!manifest) return 0;
  if (manifest->manifests.size() + manifest->blobs.size() > muster::cli::kMaxReferences + 1) {
    std::abort();
  }
  for (const auto* list : {&manifest->manifests, &manifest->blobs}) {
    for (const auto& blob : *list) {
      if (!muster::cli::IsSha256Hex(blob.sha256) || blob.size < 0) std::abort();
    }
  }
  return 0;
}
