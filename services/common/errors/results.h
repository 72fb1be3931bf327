// Generated from results.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_RESULTS_H_
#define MUSTER_SERVICES_COMMON_ERRORS_RESULTS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

// Uploads, results and archives.
namespace muster::errors {

// ALREADY_EXISTS, RESULT_CONFLICT.
absl::Status ResultConflict(std::string_view plugin, std::string_view node);
// NOT_FOUND, RESULT_NOT_FOUND.
absl::Status ResultNotFound(std::string_view plugin, std::string_view node);
// NOT_FOUND, RESULT_NOT_FOUND.
absl::Status NoResultOfEndedRun(std::string_view plugin, std::string_view node);
// FAILED_PRECONDITION, RESULT_REPLACED.
absl::Status ResultReplaced(int64_t asked, int64_t current);
// NOT_FOUND, UPLOAD_NOT_FOUND.
absl::Status UploadNotFound(std::string_view upload);
// ABORTED, TAKEN_OVER.
absl::Status StaleAttempt(int64_t attempt, int64_t newest);
// ABORTED, TAKEN_OVER.
absl::Status TakenOver(std::string_view upload);
// UNAVAILABLE, UPLOAD_COMPLETING.
absl::Status UploadCompleting(std::string_view upload);
// UNAVAILABLE, UPLOAD_IN_USE.
absl::Status UploadInUse(std::string_view plugin, std::string_view node);
// RESOURCE_EXHAUSTED, TOO_MANY_UPLOADS.
absl::Status TooManyUploads(int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_UPLOADS.
absl::Status TooManyUploadsOf(std::string_view owner, int64_t limit);
// RESOURCE_EXHAUSTED, TOO_MANY_STAGED_BYTES.
absl::Status TooManyStagedBytes(std::string_view owner, int64_t limit, std::string_view key);
// INVALID_ARGUMENT, RESULT_TOO_LARGE.
absl::Status ResultOverLimit(int64_t limit);
// RESOURCE_EXHAUSTED, RUN_FULL.
absl::Status RunFull(std::string_view run, int64_t bytes, int64_t more, int64_t limit);
// INVALID_ARGUMENT, INVALID_ATTEMPT.
absl::Status InvalidAttempt(int64_t attempt, int64_t most);
// DEADLINE_EXCEEDED, UPLOAD_STALLED.
absl::Status UploadStalled();
// OUT_OF_RANGE, OFFSET_TOO_HIGH.
absl::Status OffsetTooHigh(int64_t offset, int64_t expected);
// INVALID_ARGUMENT, INVALID_OFFSET.
absl::Status InvalidOffset(int64_t offset);
// INVALID_ARGUMENT, INVALID_OPEN_RESPONSE.
absl::Status InvalidOpenResponse(int64_t offset, int64_t size, int64_t chunk_max);
// INVALID_ARGUMENT, CHUNK_TOO_LARGE.
absl::Status ChunkTooLarge(int64_t size, int64_t limit);
// INVALID_ARGUMENT, INVALID_CHUNK.
absl::Status InvalidChunk(std::string_view why);
// DATA_LOSS, CRC_MISMATCH.
absl::Status CrcMismatch(std::string_view of);
// DATA_LOSS, DIGEST_MISMATCH.
absl::Status DigestMismatch();
// DATA_LOSS, SIZE_MISMATCH.
absl::Status SizeMismatch(int64_t said, int64_t received);
// INVALID_ARGUMENT, TOO_LARGE_FOR_SUBMIT.
absl::Status TooLargeForSubmit(int64_t size, int64_t limit);
// PERMISSION_DENIED, INVALID_SIGNATURE.
absl::Status InvalidSignature(std::string_view why);
// INVALID_ARGUMENT, INVALID_SIGNATURE.
absl::Status MalformedSignature(std::string_view why);
// UNAUTHENTICATED, INVALID_SIGNATURE.
absl::Status SignatureUnverified(std::string_view why);
// PERMISSION_DENIED, SIGNATURE_REQUIRED.
absl::Status SignatureRequired(std::string_view node);
// PERMISSION_DENIED, PROOF_TOO_OLD.
absl::Status ProofTooOld();
// PERMISSION_DENIED, REVOKED.
absl::Status SignerRevoked();
// DATA_LOSS, RESULT_DAMAGED.
absl::Status ResultDamaged(std::string_view plugin, std::string_view node, std::string_view damage);
// UNAVAILABLE, VERIFICATION_INCOMPLETE.
absl::Status VerificationIncomplete();
// DATA_LOSS, ARCHIVE_DAMAGED.
absl::Status ArchiveDamaged(std::string_view run, std::string_view damage);
// FAILED_PRECONDITION, ARCHIVE_NOT_READY.
absl::Status ArchiveNotReady(std::string_view run);
// FAILED_PRECONDITION, NO_ARCHIVE.
absl::Status NoArchive(std::string_view run);
// NOT_FOUND, PLUGIN_NOT_IN_ARCHIVE.
absl::Status PluginNotInArchive(std::string_view plugin);
// NOT_FOUND, PLUGIN_NOT_IN_ARCHIVE.
absl::Status NoPluginInArchive();
// NOT_FOUND, FILE_NOT_IN_ARCHIVE.
absl::Status FileNotInArchive(std::string_view path);
// INVALID_ARGUMENT, TAR_GZ_MALFORMED.
absl::Status TarGzMalformed(std::string_view why);
// DATA_LOSS, ARCHIVE_SIZE_MISMATCH.
absl::Status ArchiveSizeMismatch(std::string_view path, int64_t announced, std::string_view found);
// INTERNAL, ARCHIVE_WRITE_FAILED.
absl::Status ArchiveWriteFailed(std::string_view what, std::string_view why);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_RESULTS_H_
