// The credentials of a node for registries.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_REGISTRY_CREDENTIALS_H_
#define MUSTER_SERVICES_AGENT_DOCKER_REGISTRY_CREDENTIALS_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace muster {

// A file in the format of Docker's config.json, of which `auths` alone is used. It is read again at
// each use, so that a change needs no restart. Its content appears in no error. Immutable;
// thread-safe.
class RegistryCredentials {
 public:
  // An empty path, or one without a file: no credentials.
  explicit RegistryCredentials(std::string path = "") : path_(std::move(path)) {}

  // Returns the value of the header X-Registry-Auth for the registry of an image or repository.
  // FAILED_PRECONDITION (REGISTRY_CREDENTIALS_UNUSABLE), also if other users may read the file.
  absl::StatusOr<std::string> HeaderFor(std::string_view image) const;

 private:
  const std::string path_;
};

// Returns the registry of an image or repository: "registry.example:5000", or "docker.io" if its
// name begins with none.
std::string RegistryOf(std::string_view image);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_REGISTRY_CREDENTIALS_H_
