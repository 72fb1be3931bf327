// References to images of containers.
#ifndef MUSTER_SERVICES_COMMON_BASE_IMAGE_REFERENCE_H_
#define MUSTER_SERVICES_COMMON_BASE_IMAGE_REFERENCE_H_

#include <string_view>

namespace muster {

// Returns whether `reference` names an image by its content, so that it is always the same one:
// "NAME@sha256:DIGEST" of a registry, where NAME may have a tag, or "sha256:ID". At most 512
// characters. It is safe in a path of a URL: no part of NAME is empty, "." or "..".
bool IsImageByContent(std::string_view reference);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_IMAGE_REFERENCE_H_
