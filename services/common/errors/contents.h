// Generated from contents.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_CONTENTS_H_
#define MUSTER_SERVICES_COMMON_ERRORS_CONTENTS_H_

#include <string_view>

#include "absl/status/status.h"

// Contents of files.
namespace muster::errors {

// INVALID_ARGUMENT, INVALID_CONTENT.
absl::Status InvalidContent(std::string_view why);
// NOT_FOUND, CONTENT_NOT_FOUND.
absl::Status ContentNotFound(std::string_view digest, std::string_view deployment);
// FAILED_PRECONDITION, CONTENT_MISSING.
absl::Status ContentMissing(std::string_view path, std::string_view digest);
// RESOURCE_EXHAUSTED, CONTENT_QUOTA.
absl::Status ContentQuota(std::string_view limit, std::string_view key);
// DATA_LOSS, CRC_MISMATCH.
absl::Status ContentPartDamaged();
// DATA_LOSS, DIGEST_MISMATCH.
absl::Status ContentDigestMismatch(std::string_view digest);
// UNAVAILABLE, CONTENT_UNREACHABLE.
absl::Status ContentUnreachable(std::string_view path, std::string_view why);
// DATA_LOSS, CONTENT_DAMAGED.
absl::Status ContentDamaged(std::string_view path);
// PERMISSION_DENIED, FILES_TOO_LARGE.
absl::Status FilesTooLarge(std::string_view size, std::string_view limit);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_CONTENTS_H_
