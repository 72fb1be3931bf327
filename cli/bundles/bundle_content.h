// The documents and images of a bundle that lies unpacked in a folder.
#ifndef MUSTER_CLI_BUNDLES_BUNDLE_CONTENT_H_
#define MUSTER_CLI_BUNDLES_BUNDLE_CONTENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/bundles/bundle_index.h"
#include "cli/bundles/image_manifest.h"

namespace muster::cli {

struct BundleDocument {
  std::string version;  // NAME@VERSION, whole
  std::string text;     // as CanonicalDocument returns it
  std::string image;    // NAME@sha256:DIGEST; empty for a template that runs that of its type
  std::string type;     // of a template: NAME@VERSION
};

// An image with all of its platforms.
struct BundleImage {
  std::set<std::string> manifests;       // the SHA-256 of those of its platforms, if it is an index
  std::map<std::string, int64_t> blobs;  // configurations and layers: SHA-256 and size

  int64_t size() const;  // bytes of the blobs
};

struct BundleContent {
  std::vector<BundleDocument> types;
  std::vector<BundleDocument> templates;
  std::map<std::string, BundleImage> images;  // by NAME@sha256:DIGEST, as documents name them
};

// Returns the content of a folder with these members, whose sizes and digests were verified. Each
// document is valid and has the name and version of its path, each template its type, each image
// all of its blobs, and each blob belongs to an image. INVALID_ARGUMENT (BUNDLE_UNUSABLE names
// `file`).
absl::StatusOr<BundleContent> ReadBundleContent(const std::string& folder,
                                                const std::vector<BundleMember>& members,
                                                const std::string& file);

// Returns the text of a manifest, which is to be bounded.
using ReadManifest = std::function<absl::StatusOr<std::string>(const std::string& sha256)>;

// Reads the manifest of an image, and those of its platforms. The errors of `read`, and
// FAILED_PRECONDITION (IMAGE_COPY_FAILED) for a text that ParseImageManifest refuses.
absl::StatusOr<BundleImage> ReadImage(const std::string& sha256, const ReadManifest& read);

// Writes what makes the blobs in `folder` an OCI image layout.
absl::Status WriteLayout(const std::string& folder,
                         const std::map<std::string, BundleImage>& images);

}  // namespace muster::cli

#endif  // MUSTER_CLI_BUNDLES_BUNDLE_CONTENT_H_
