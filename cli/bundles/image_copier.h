// Copies images between registries and folders.
#ifndef MUSTER_CLI_BUNDLES_IMAGE_COPIER_H_
#define MUSTER_CLI_BUNDLES_IMAGE_COPIER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/bundles/bundle_content.h"
#include "cli/temporary_folder.h"

namespace muster::cli {

struct RegistryOptions {
  std::string auth_file;  // credentials in the format of Docker's config.json; empty: the user's
  std::string ca_file;    // of the registries, in PEM; empty: those of the system and of Docker
  // A copy without any traffic for this time has failed.
  absl::Duration stall_limit = absl::Minutes(5);
  std::string program = "/usr/bin/skopeo";
};

// Runs the program skopeo (Debian's package, https://github.com/containers/skopeo), which keeps
// manifests and blobs as they are. Registries are asked by https; by http too if they are on the
// loopback interface, as Docker does. Calls block until the copy ends, `stopped` returns true, or
// nothing moves for the stall limit, and leave no process. Not thread-safe.
//
// FAILED_PRECONDITION (IMAGE_COPY_FAILED names the image and the cause), CANCELLED.
class ImageCopier {
 public:
  using Stopped = std::function<bool()>;

  ImageCopier(RegistryOptions options, Stopped stopped)
      : options_(std::move(options)), stopped_(std::move(stopped)) {}

  // Returns the manifest of NAME@sha256:DIGEST. Its digest was verified.
  absl::StatusOr<std::string> ReadManifestOf(const std::string& image);

  // Adds the manifests and blobs of NAME@sha256:DIGEST, with all platforms, to a folder, each named
  // by its SHA-256. `size`: of its blobs; a registry that sends more is refused. `progress`
  // receives the bytes of this image so far.
  absl::Status Pull(const std::string& image, int64_t size, const std::string& blobs,
                    const std::function<void(int64_t bytes)>& progress);

  // Pushes an image from such a folder to NAME@sha256:DIGEST, with the tag muster-DIGEST, which
  // keeps registries from removing it as unused. Blobs that the registry has are not sent. Returns
  // once the registry has confirmed the digest.
  absl::Status Push(const BundleImage& image, const std::string& blobs, const std::string& target);

 private:
  struct Call {
    std::vector<std::string> arguments;
    std::string image;  // for errors, and to see whether its registry is local
    size_t output = 0;  // bytes of stdout that are kept
    std::function<absl::Status()> tick;
  };
  absl::StatusOr<std::string> Run(const Call& call);
  absl::StatusOr<std::vector<std::string>> RegistryArguments(const std::string& prefix,
                                                             const std::string& image);
  absl::StatusOr<std::string> CertificateFolder();

  const RegistryOptions options_;
  const Stopped stopped_;
  const TemporaryFolder work_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_BUNDLES_IMAGE_COPIER_H_
