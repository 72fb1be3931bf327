// Builds images of the node's Docker, and pushes them to registries.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_IMAGE_BUILDER_H_
#define MUSTER_SERVICES_AGENT_DOCKER_IMAGE_BUILDER_H_

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/docker/build_context.h"
#include "services/agent/docker/docker_engine.h"

namespace muster {

// The labels of built images: the agent and the job that built them. By these the agent finds what
// a build has left.
inline constexpr std::string_view kBuilderLabel = "muster.builder";
inline constexpr std::string_view kBuildJobLabel = "muster.build";

// The name of an image while it is built and pushed.
struct BuiltImageName {
  std::string repository;
  std::string job;

  // The tag stays in the registry: it keeps the image from being removed as unused there.
  std::string tag() const { return "muster-" + job; }
};

// Calls block on the daemon for at most `limit`, and for at most a second after `stopped` returns
// true. All fail as those of DockerEngine do. Thread-safe.
class ImageBuilder {
 public:
  struct Call {
    absl::Duration limit;
    std::function<bool()> stopped;
    // Receives lines of the daemon with their line breaks.
    std::function<void(std::string_view line)> output;
  };

  explicit ImageBuilder(DockerEngine& engine) : engine_(engine) {}  // outlives this object

  // Builds an image without a network, and without executing anything. The node has the base image.
  // BUILD_FAILED.
  absl::Status Build(const ImageRecipe& recipe, const BuildFiles& files, const BuiltImageName& name,
                     const Call& call);

  // Pushes it, and returns its digest, "sha256:DIGEST", which the registry has confirmed.
  // IMAGE_PUSH_FAILED, IMAGE_DIGEST_DIFFERS, REGISTRY_CREDENTIALS_UNUSABLE.
  absl::StatusOr<std::string> Push(const BuiltImageName& name, const Call& call);

  // Removes the images that a build has left on the node: its tag, and those without a name. Leaves
  // the base image, and images that were pulled.
  absl::Status Remove(const std::string& job);

  // Returns the jobs of which Remove would remove images, by their kBuilderLabel.
  absl::StatusOr<std::set<std::string>> ListJobs(const std::string& builder);

 private:
  struct Leftover {
    std::string job;
    std::string name;  // a tag or an id
  };

  absl::StatusOr<std::vector<Leftover>> ListLeftovers(std::string_view label,
                                                      const std::string& value);
  absl::StatusOr<std::string> ConfirmedDigest(const BuiltImageName& name, const Call& call);

  DockerEngine& engine_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_IMAGE_BUILDER_H_
