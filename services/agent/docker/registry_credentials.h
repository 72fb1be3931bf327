// The credentials of a node for registries, and their mirrors.
#ifndef MUSTER_SERVICES_AGENT_DOCKER_REGISTRY_CREDENTIALS_H_
#define MUSTER_SERVICES_AGENT_DOCKER_REGISTRY_CREDENTIALS_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace muster {

// A file in the format of Docker's config.json, of which `auths` alone is used. A further field
// names mirrors: {"mirrors": {"registry.example": "registry.site:5000/outside"}}. The file is read
// again at each use, so that a change needs no restart. Its content appears in no error. Immutable;
// thread-safe.
class RegistryCredentials {
 public:
  // An empty path, or one without a file: no credentials.
  explicit RegistryCredentials(std::string path = "") : path_(std::move(path)) {}

  // Returns the value of the header X-Registry-Auth for the registry of an image or repository.
  // FAILED_PRECONDITION (REGISTRY_CREDENTIALS_UNUSABLE), also if other users may read the file.
  absl::StatusOr<std::string> HeaderFor(std::string_view image) const;

  // Returns the name by which the node pulls an image: NAME@sha256:DIGEST in the mirror of its
  // registry, or `image` itself if its registry has no mirror. REGISTRY_CREDENTIALS_UNUSABLE, also
  // for a mirror that is no HOST, HOST:PORT or one of them with a prefix.
  absl::StatusOr<std::string> NameInMirror(const std::string& image) const;

 private:
  absl::StatusOr<nlohmann::json> Read() const;  // an empty object without a file

  const std::string path_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_DOCKER_REGISTRY_CREDENTIALS_H_
