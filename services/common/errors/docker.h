// Generated from docker.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_DOCKER_H_
#define MUSTER_SERVICES_COMMON_ERRORS_DOCKER_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Containers.
namespace muster::errors {

// UNAVAILABLE, DOCKER_UNREACHABLE.
absl::Status DockerUnreachable(std::string_view socket, std::string_view why);
// FAILED_PRECONDITION, DOCKER_TOO_OLD.
absl::Status DockerTooOld(std::string_view version, std::string_view oldest);
// INTERNAL, DOCKER_ANSWER_INVALID.
absl::Status DockerAnswerInvalid(std::string_view call, std::string_view why);
// FAILED_PRECONDITION, DOCKER_FAILED.
absl::Status DockerFailed(std::string_view call, int64_t status, std::string_view why);
// NOT_FOUND, IMAGE_NOT_FOUND.
absl::Status ImageNotFound(std::string_view image);
// FAILED_PRECONDITION, IMAGE_PULL_FAILED.
absl::Status ImagePullFailed(std::string_view image, std::string_view why);
// NOT_FOUND, CONTAINER_NOT_FOUND.
absl::Status ContainerNotFound(std::string_view container);
// ALREADY_EXISTS, CONTAINER_EXISTS.
absl::Status ContainerExists(std::string_view container);
// FAILED_PRECONDITION, CONTAINER_NOT_STARTED.
absl::Status ContainerNotStarted(std::string_view why);
// DATA_LOSS, CONTAINER_STATE_LOST.
absl::Status ContainerStateLost();
// DATA_LOSS, CONTAINER_OUTPUT_DAMAGED.
absl::Status ContainerOutputDamaged();
// UNAVAILABLE, CONTAINER_OUTPUT_LOST.
absl::Status ContainerOutputLost(std::string_view why);
// FAILED_PRECONDITION, BASE_IMAGE_HAS_TRIGGERS.
absl::Status BaseImageHasTriggers(std::string_view image);
// FAILED_PRECONDITION, BUILD_FAILED.
absl::Status BuildFailed(std::string_view why);
// CANCELLED, BUILD_STOPPED.
absl::Status BuildStopped(std::string_view doing);
// FAILED_PRECONDITION, IMAGE_PUSH_FAILED.
absl::Status ImagePushFailed(std::string_view repository, std::string_view why);
// DATA_LOSS, IMAGE_DIGEST_DIFFERS.
absl::Status ImageDigestDiffers(std::string_view repository, std::string_view pushed, std::string_view found);
// FAILED_PRECONDITION, REGISTRY_CREDENTIALS_UNUSABLE.
absl::Status RegistryCredentialsUnusable(std::string_view path, std::string_view why);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_DOCKER_H_
