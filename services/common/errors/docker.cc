// Generated from docker.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/docker.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status DockerUnreachable(std::string_view socket, std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "DOCKER_UNREACHABLE",
                   absl::StrCat("no answer from Docker at ", ToAbsl(socket), ": ", ToAbsl(why)),
                   "Start Docker on the node, and let the user of the agent open its socket.");
}

absl::Status DockerTooOld(std::string_view version, std::string_view oldest) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "DOCKER_TOO_OLD",
                   absl::StrCat("the Docker of this node has version ", ToAbsl(version), " of the API; the agent requires ", ToAbsl(oldest)),
                   "Install a newer Docker on the node.");
}

absl::Status DockerAnswerInvalid(std::string_view call, std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "DOCKER_ANSWER_INVALID",
                   absl::StrCat("the answer of Docker to ", ToAbsl(call), " is invalid: ", ToAbsl(why)),
                   "Look for an error in the log of Docker on the node.");
}

absl::Status DockerFailed(std::string_view call, int64_t status, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "DOCKER_FAILED",
                   absl::StrCat(ToAbsl(call), " failed with ", status, ": ", ToAbsl(why)),
                   "Look for an error in the log of Docker on the node.");
}

absl::Status ImageNotFound(std::string_view image) {
  return MakeError(absl::StatusCode::kNotFound, "IMAGE_NOT_FOUND",
                   absl::StrCat("image ", ToAbsl(image), " not found on this node"),
                   "Pull the image, or load it from an archive.");
}

absl::Status ImagePullFailed(std::string_view image, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "IMAGE_PULL_FAILED",
                   absl::StrCat("image ", ToAbsl(image), " cannot be pulled: ", ToAbsl(why)),
                   "Check the name of the image, the registry, and the node's access to it.");
}

absl::Status ContainerNotFound(std::string_view container) {
  return MakeError(absl::StatusCode::kNotFound, "CONTAINER_NOT_FOUND",
                   absl::StrCat("container ", ToAbsl(container), " not found on this node"),
                   "Find out who removed it.");
}

absl::Status ContainerExists(std::string_view container) {
  return MakeError(absl::StatusCode::kAlreadyExists, "CONTAINER_EXISTS",
                   absl::StrCat("container ", ToAbsl(container), " exists on this node"),
                   "Wait until the agent has collected it, or remove it.");
}

absl::Status ContainerNotStarted(std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "CONTAINER_NOT_STARTED",
                   absl::StrCat("the container cannot be started: ", ToAbsl(why)),
                   "Check the command and the image.");
}

absl::Status ContainerStateLost() {
  return MakeError(absl::StatusCode::kDataLoss, "CONTAINER_STATE_LOST",
                   "the start of the container is lost, because Docker was killed meanwhile and does not know that it ran",
                   "Check on the node what the command has done, and whether a process of it still runs.");
}

absl::Status ContainerOutputDamaged() {
  return MakeError(absl::StatusCode::kDataLoss, "CONTAINER_OUTPUT_DAMAGED",
                   "the output of the container does not have the frames of Docker's API",
                   "Look for an error in the log of Docker on the node.");
}

absl::Status ContainerOutputLost(std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "CONTAINER_OUTPUT_LOST",
                   absl::StrCat("the output of the container is not available: ", ToAbsl(why)),
                   "Look for an error in the log of Docker on the node.");
}

absl::Status BaseImageHasTriggers(std::string_view image) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "BASE_IMAGE_HAS_TRIGGERS",
                   absl::StrCat("image ", ToAbsl(image), " has ONBUILD instructions, which a build would execute"),
                   "Use a type whose image has no ONBUILD instructions.");
}

absl::Status BuildFailed(std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "BUILD_FAILED",
                   absl::StrCat("the image cannot be built: ", ToAbsl(why)),
                   "Look for an error in the log of Docker on the node.");
}

absl::Status BuildStopped(std::string_view doing) {
  return MakeError(absl::StatusCode::kCancelled, "BUILD_STOPPED",
                   absl::StrCat("the build was stopped while the node ", ToAbsl(doing)),
                   "Build it again.");
}

absl::Status ImagePushFailed(std::string_view repository, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "IMAGE_PUSH_FAILED",
                   absl::StrCat("the image cannot be pushed to ", ToAbsl(repository), ": ", ToAbsl(why)),
                   "Check the name of the repository, the registry, and the registry credentials of the node.");
}

absl::Status ImageDigestDiffers(std::string_view repository, std::string_view pushed, std::string_view found) {
  return MakeError(absl::StatusCode::kDataLoss, "IMAGE_DIGEST_DIFFERS",
                   absl::StrCat(ToAbsl(repository), " returns the image ", ToAbsl(found), " after a push of ", ToAbsl(pushed)),
                   "Find out why the registry changes images. Nothing was stored.");
}

absl::Status RegistryCredentialsUnusable(std::string_view path, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "REGISTRY_CREDENTIALS_UNUSABLE",
                   absl::StrCat("the registry credentials in ", ToAbsl(path), " cannot be used: ", ToAbsl(why)),
                   "See \"Registry credentials\" in docs/agent.md.");
}

}  // namespace muster::errors
