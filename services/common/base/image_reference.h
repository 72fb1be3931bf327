// References to images of containers.
#ifndef MUSTER_SERVICES_COMMON_BASE_IMAGE_REFERENCE_H_
#define MUSTER_SERVICES_COMMON_BASE_IMAGE_REFERENCE_H_

#include <string>
#include <string_view>

namespace muster {

inline constexpr std::string_view kDockerHub = "docker.io";

// Returns whether `reference` names an image by its content, so that it is always the same one:
// "NAME@sha256:DIGEST" of a registry, where NAME may have a tag, or "sha256:ID". At most 512
// characters. It is safe in a path of a URL: no part of NAME is empty, "." or "..".
bool IsImageByContent(std::string_view reference);

// Returns the registry of an image or repository: "registry.example:5000", or "docker.io" if its
// name begins with none.
std::string RegistryOf(std::string_view image);

// Returns the repository of an image without its registry, tag and digest, as the API of registries
// names it: "tools/ansible", and "library/busybox" for "busybox" of Docker Hub.
std::string RepositoryOf(std::string_view image);

// Returns "sha256:DIGEST" of an image NAME@sha256:DIGEST; empty if it has none.
std::string_view DigestOf(std::string_view image);

// Returns whether `text` is HOST, HOST:PORT, or one of them with a prefix of repositories:
// "registry.site:5000/outside". At most 255 characters.
bool IsRegistryPrefix(std::string_view text);

// Returns the name of NAME@sha256:DIGEST in another registry, without a tag. `registry` is one that
// IsRegistryPrefix accepts: "registry.site:5000/outside/tools/ansible@sha256:DIGEST".
std::string ImageInRegistry(std::string_view image, std::string_view registry);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_IMAGE_REFERENCE_H_
