// Generated from contents.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/contents.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status InvalidContent(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CONTENT",
                   absl::StrCat("invalid content: ", ToAbsl(why)),
                   "Send the call as ContentService describes it.");
}

absl::Status ContentNotFound(std::string_view digest, std::string_view deployment) {
  return MakeError(absl::StatusCode::kNotFound, "CONTENT_NOT_FOUND",
                   absl::StrCat("content ", ToAbsl(digest), " of deployment ", ToAbsl(deployment), " not found for this node"),
                   "Check that the deployment exists and names this node.");
}

absl::Status ContentMissing(std::string_view path, std::string_view digest) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "CONTENT_MISSING",
                   absl::StrCat("the content of the file \"", ToAbsl(path), "\" (SHA-256 ", ToAbsl(digest), ") is not stored"),
                   "Upload it first (ContentService.UploadContent); muster deploy does.");
}

absl::Status ContentQuota(std::string_view limit, std::string_view key) {
  return MakeError(absl::StatusCode::kResourceExhausted, "CONTENT_QUOTA",
                   absl::StrCat("the contents of files would exceed their limit: ", ToAbsl(limit)),
                   absl::StrCat("Wait until unused contents have expired after a day, or raise ", ToAbsl(key), " in the configuration of the jobs service."));
}

absl::Status ContentPartDamaged() {
  return MakeError(absl::StatusCode::kDataLoss, "CRC_MISMATCH",
                   "the CRC32C of a part of a content does not match its bytes",
                   "Send the part again; if the error repeats, check the memory and the network of the sender.");
}

absl::Status ContentDigestMismatch(std::string_view digest) {
  return MakeError(absl::StatusCode::kDataLoss, "DIGEST_MISMATCH",
                   absl::StrCat("the uploaded bytes do not have the SHA-256 ", ToAbsl(digest)),
                   "Upload the content again from its beginning. The file must not change meanwhile.");
}

absl::Status ContentUnreachable(std::string_view path, std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "CONTENT_UNREACHABLE",
                   absl::StrCat("the file \"", ToAbsl(path), "\" cannot be read from the jobs service: ", ToAbsl(why)),
                   "Check the relays of the node and the jobs service, and try the deployment again.");
}

absl::Status ContentDamaged(std::string_view path) {
  return MakeError(absl::StatusCode::kDataLoss, "CONTENT_DAMAGED",
                   absl::StrCat("the received bytes of the file \"", ToAbsl(path), "\" are not those that the operator signed"),
                   "Check the relays of the node and the disk of the jobs service, and try the deployment again.");
}

absl::Status FilesTooLarge(std::string_view size, std::string_view limit) {
  return MakeError(absl::StatusCode::kPermissionDenied, "FILES_TOO_LARGE",
                   absl::StrCat("the files of the deployment have ", ToAbsl(size), ", and the policy of the node admits ", ToAbsl(limit)),
                   "Raise max_files in the rule for containers in the policy of the node (policy.yaml), or deploy smaller files.");
}

}  // namespace muster::errors
