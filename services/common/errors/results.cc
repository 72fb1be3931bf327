// Generated from results.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/results.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status ResultConflict(std::string_view plugin, std::string_view node) {
  return MakeError(absl::StatusCode::kAlreadyExists, "RESULT_CONFLICT",
                   absl::StrCat("another result of plugin \"", ToAbsl(plugin), "\" from node \"", ToAbsl(node), "\" is committed; this one was not stored"),
                   "Keep the committed result. The audit log names both senders.");
}

absl::Status ResultNotFound(std::string_view plugin, std::string_view node) {
  return MakeError(absl::StatusCode::kNotFound, "RESULT_NOT_FOUND",
                   absl::StrCat("plugin \"", ToAbsl(plugin), "\" has no result from node \"", ToAbsl(node), "\" yet"),
                   "Wait for it: muster status RUN --watch.");
}

absl::Status NoResultOfEndedRun(std::string_view plugin, std::string_view node) {
  return MakeError(absl::StatusCode::kNotFound, "RESULT_NOT_FOUND",
                   absl::StrCat("plugin \"", ToAbsl(plugin), "\" has no result from node \"", ToAbsl(node), "\", and the run has ended"),
                   "Show why: muster status RUN.");
}

absl::Status ResultReplaced(int64_t asked, int64_t current) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RESULT_REPLACED",
                   absl::StrCat("generation ", asked, " was replaced by generation ", current),
                   "Read the result again from the beginning.");
}

absl::Status UploadNotFound(std::string_view upload) {
  return MakeError(absl::StatusCode::kNotFound, "UPLOAD_NOT_FOUND",
                   absl::StrCat("upload \"", ToAbsl(upload), "\" not found"),
                   "Open the upload again and continue at the offset in the response.");
}

absl::Status StaleAttempt(int64_t attempt, int64_t newest) {
  return MakeError(absl::StatusCode::kAborted, "TAKEN_OVER",
                   absl::StrCat("attempt ", attempt, " is outdated: attempt ", newest, " delivers this result"),
                   "Stop this sender.");
}

absl::Status TakenOver(std::string_view upload) {
  return MakeError(absl::StatusCode::kAborted, "TAKEN_OVER",
                   absl::StrCat("another stream has taken over upload ", ToAbsl(upload)),
                   "Stop this sender, or open the upload again if it is the only one.");
}

absl::Status UploadCompleting(std::string_view upload) {
  return MakeError(absl::StatusCode::kUnavailable, "UPLOAD_COMPLETING",
                   absl::StrCat("another stream is completing upload ", ToAbsl(upload)),
                   "Open the upload again; the response states whether its result is committed.");
}

absl::Status UploadInUse(std::string_view plugin, std::string_view node) {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "UPLOAD_IN_USE",
                   absl::StrCat("node ", ToAbsl(node), " itself is delivering its result of ", ToAbsl(plugin)),
                   "Try again later; the node's stream ends with its connection."),
                        absl::Seconds(5));
}

absl::Status TooManyUploads(int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_UPLOADS",
                   absl::StrCat("more than ", limit, " uploads are open"),
                   "Try again later."),
                        absl::Seconds(5));
}

absl::Status TooManyUploadsOf(std::string_view owner, int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_UPLOADS",
                   absl::StrCat("more than ", limit, " uploads of ", ToAbsl(owner), " are open"),
                   "Finish one of these uploads first."),
                        absl::Seconds(5));
}

absl::Status TooManyStagedBytes(std::string_view owner, int64_t limit, std::string_view key) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_STAGED_BYTES",
                   absl::StrCat("the unfinished uploads of ", ToAbsl(owner), " would take more than ", limit, " bytes of the disk"),
                   absl::StrCat("Finish one of these uploads first, or raise ", ToAbsl(key), " in the configuration of the aggregator.")),
                        absl::Seconds(30));
}

absl::Status ResultOverLimit(int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, "RESULT_TOO_LARGE",
                   absl::StrCat("the result has more than ", limit, " bytes"),
                   "Make the result smaller, or raise limits.result_bytes in the configuration of the aggregator.");
}

absl::Status RunFull(std::string_view run, int64_t bytes, int64_t more, int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "RUN_FULL",
                   absl::StrCat("the results of run ", ToAbsl(run), " have ", bytes, " bytes: ", more, " more would exceed its limit of ", limit),
                   "Make the result smaller, or raise limits.run_results_percent in the configuration of the aggregator; senders try again."),
                        absl::Seconds(30));
}

absl::Status InvalidAttempt(int64_t attempt, int64_t most) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_ATTEMPT",
                   absl::StrCat("attempt ", attempt, " is not between 1 and ", most),
                   "Count the attempts from 1, or number them by the time in nanoseconds and check the clock.");
}

absl::Status UploadStalled() {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "UPLOAD_STALLED",
                   "the upload was slower than 1 KiB/s for 60 s",
                   "Open the upload again and continue at the offset in the response.");
}

absl::Status OffsetTooHigh(int64_t offset, int64_t expected) {
  return MakeError(absl::StatusCode::kOutOfRange, "OFFSET_TOO_HIGH",
                   absl::StrCat("offset ", offset, " is beyond ", expected),
                   absl::StrCat("Continue at byte ", expected, "."));
}

absl::Status InvalidOffset(int64_t offset) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_OFFSET",
                   absl::StrCat("invalid offset ", offset),
                   "Count raw bytes from 0.");
}

absl::Status InvalidOpenResponse(int64_t offset, int64_t size, int64_t chunk_max) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_OPEN_RESPONSE",
                   absl::StrCat("the answer to OpenUpload continues at byte ", offset, " of ", size, " with chunks of ", chunk_max, " bytes, which is not possible"),
                   "The relay or service that this program is connected to is faulty: name another one in its configuration, and replace the faulty one.");
}

absl::Status ChunkTooLarge(int64_t size, int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CHUNK_TOO_LARGE",
                   absl::StrCat("the chunk has ", size, " raw bytes, more than ", limit),
                   "Observe chunk_max in the response of OpenUpload.");
}

absl::Status InvalidChunk(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CHUNK",
                   absl::StrCat("invalid chunk: ", ToAbsl(why)),
                   "Send start, the chunks in order, and finish, as UploadRequest describes.");
}

absl::Status CrcMismatch(std::string_view of) {
  return MakeError(absl::StatusCode::kDataLoss, "CRC_MISMATCH",
                   absl::StrCat("the CRC32C of the ", ToAbsl(of), " does not match its bytes"),
                   "Open the upload again and continue at the offset in the response; if the error repeats, check the memory and the network of the sender.");
}

absl::Status DigestMismatch() {
  return MakeError(absl::StatusCode::kDataLoss, "DIGEST_MISMATCH",
                   "the SHA-256 of the received bytes differs from the announced one",
                   "Start the delivery again with a new attempt.");
}

absl::Status SizeMismatch(int64_t said, int64_t received) {
  return MakeError(absl::StatusCode::kDataLoss, "SIZE_MISMATCH",
                   absl::StrCat("received ", received, " bytes, announced ", said),
                   "Open the upload again and continue at the offset in the response.");
}

absl::Status TooLargeForSubmit(int64_t size, int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, "TOO_LARGE_FOR_SUBMIT",
                   absl::StrCat(size, " bytes exceed the limit of SubmitResult, ", limit, " bytes"),
                   "Use OpenUpload and Upload.");
}

absl::Status InvalidSignature(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "INVALID_SIGNATURE",
                   absl::StrCat("the signature of the result is not accepted: ", ToAbsl(why)),
                   "Sign the text that the API describes with the key of the delivering node.");
}

absl::Status MalformedSignature(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_SIGNATURE",
                   absl::StrCat("the signature of the result is not accepted: ", ToAbsl(why)),
                   "Sign the text that the API describes with the key of the delivering node.");
}

absl::Status SignatureUnverified(std::string_view why) {
  return MakeError(absl::StatusCode::kUnauthenticated, "INVALID_SIGNATURE",
                   absl::StrCat("the signature of the result is not accepted: ", ToAbsl(why)),
                   "Sign the text that the API describes with the key of the delivering node.");
}

absl::Status SignatureRequired(std::string_view node) {
  return MakeError(absl::StatusCode::kPermissionDenied, "SIGNATURE_REQUIRED",
                   absl::StrCat("a relay delivered a result of node \"", ToAbsl(node), "\" without a signature"),
                   "Sign results that are delivered through relays, as the client library does.");
}

absl::Status ProofTooOld() {
  return MakeError(absl::StatusCode::kPermissionDenied, "PROOF_TOO_OLD",
                   "the relay received this result more than 8 days ago, or its clock is ahead",
                   "Check the clocks of relay and aggregator; older results are not accepted.");
}

absl::Status SignerRevoked() {
  return MakeError(absl::StatusCode::kPermissionDenied, "REVOKED",
                   "the node that signed this result was revoked",
                   "Let the node join again.");
}

absl::Status ResultDamaged(std::string_view plugin, std::string_view node, std::string_view damage) {
  return MakeError(absl::StatusCode::kDataLoss, "RESULT_DAMAGED",
                   absl::StrCat("the stored result of plugin \"", ToAbsl(plugin), "\" from node \"", ToAbsl(node), "\" is damaged: ", ToAbsl(damage)),
                   "Until the run is sealed, deliver the same content again. After that, take it from the archive (muster retrieve RUN), or copy the file from a backup. Check the disk.");
}

absl::Status VerificationIncomplete() {
  return MakeError(absl::StatusCode::kUnavailable, "VERIFICATION_INCOMPLETE",
                   "the verification ended before everything was compared",
                   "Start it again.");
}

absl::Status ArchiveDamaged(std::string_view run, std::string_view damage) {
  return MakeError(absl::StatusCode::kDataLoss, "ARCHIVE_DAMAGED",
                   absl::StrCat("the stored archive of run ", ToAbsl(run), " is damaged: ", ToAbsl(damage)),
                   absl::StrCat("Read the stored results one by one (muster results ", ToAbsl(run), " -p PLUGIN -n NODE -o FILE, or GET /api/v1/runs/", ToAbsl(run), "/results/PLUGIN/NODE/content), or restore a backup. Check the disk."));
}

absl::Status ArchiveNotReady(std::string_view run) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "ARCHIVE_NOT_READY",
                   absl::StrCat("run ", ToAbsl(run), " is not complete yet"),
                   absl::StrCat("Wait for it: muster status ", ToAbsl(run), " --watch."));
}

absl::Status NoArchive(std::string_view run) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_ARCHIVE",
                   absl::StrCat("run ", ToAbsl(run), " ended without an archive"),
                   absl::StrCat("Read the committed results: muster results ", ToAbsl(run), "."));
}

absl::Status PluginNotInArchive(std::string_view plugin) {
  return MakeError(absl::StatusCode::kNotFound, "PLUGIN_NOT_IN_ARCHIVE",
                   absl::StrCat("plugin \"", ToAbsl(plugin), "\" not found in the archive"),
                   "List the plugins of the run: muster status RUN.");
}

absl::Status NoPluginInArchive() {
  return MakeError(absl::StatusCode::kNotFound, "PLUGIN_NOT_IN_ARCHIVE",
                   "the archive contains no plugin",
                   "List the plugins of the run: muster status RUN.");
}

absl::Status FileNotInArchive(std::string_view path) {
  return MakeError(absl::StatusCode::kNotFound, "FILE_NOT_IN_ARCHIVE",
                   absl::StrCat("file ", ToAbsl(path), " not found in the archive"),
                   "List the files of the archive: tar tzf ARCHIVE.");
}

absl::Status TarGzMalformed(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "TAR_GZ_MALFORMED",
                   why,
                   "");
}

absl::Status ArchiveSizeMismatch(std::string_view path, int64_t announced, std::string_view found) {
  return MakeError(absl::StatusCode::kDataLoss, "ARCHIVE_SIZE_MISMATCH",
                   absl::StrCat(ToAbsl(path), ": announced ", announced, " bytes, written ", ToAbsl(found)),
                   "Check the stored bytes of this result, and the disk.");
}

absl::Status ArchiveWriteFailed(std::string_view what, std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "ARCHIVE_WRITE_FAILED",
                   absl::StrCat("cannot ", ToAbsl(what), ": ", ToAbsl(why)),
                   "Read the log of the service.");
}

}  // namespace muster::errors
