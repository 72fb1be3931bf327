// The catalogue: every error that a user of Muster can meet, with its reason, its wording and what
// to do next, decided once. docs/errors.md lists them.
//
// Reasons that belong to one mechanism are made beside it (names, files, certificates: see base/
// and identity/); what the services answer is here.
#ifndef MUSTER_SERVICES_COMMON_ERRORS_H_
#define MUSTER_SERVICES_COMMON_ERRORS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster::errors {

// Runs.
absl::Status RunNotFound(std::string_view run);
absl::Status RunNotEnded(std::string_view run);
absl::Status RunEnded(std::string_view run);
absl::Status RunSealed(std::string_view run);
absl::Status RunCancelled(std::string_view run);
absl::Status PairNotPlanned(std::string_view run, std::string_view plugin, std::string_view node);
absl::Status InvalidPlugin(std::string_view plugin, std::string_view why);
absl::Status InvalidTimeout(std::string_view field, std::string_view limits);
absl::Status EmptyPlan();
absl::Status PlanTooLarge(int64_t pairs, int64_t limit);
absl::Status TextTooLong(std::string_view field, int64_t limit);
absl::Status InvalidPageToken();
absl::Status InvalidPageSize(int64_t limit);

// Deliveries.
absl::Status ResultConflict(std::string_view plugin, std::string_view node);
absl::Status ResultNotThere(std::string_view plugin, std::string_view node);
absl::Status ResultReplaced(int64_t asked, int64_t current);
absl::Status UploadNotFound(std::string_view upload);
absl::Status StaleAttempt(int64_t attempt);
absl::Status TakenOver(std::string_view upload);
absl::Status TooManyUploads(int64_t limit);
absl::Status UploadStalled();
absl::Status OffsetTooHigh(int64_t offset, int64_t expected);
absl::Status InvalidOffset(int64_t offset);
absl::Status ChunkTooLarge(int64_t size, int64_t limit);
absl::Status InvalidChunk(std::string_view why);
absl::Status CrcMismatch(std::string_view of);
absl::Status DigestMismatch();
absl::Status SizeMismatch(int64_t said, int64_t received);
absl::Status TooLargeForSubmit(int64_t size, int64_t limit);
absl::Status InvalidSignature(std::string_view why);
absl::Status SignatureRequired(std::string_view node);

// Archives.
absl::Status ArchiveNotReady(std::string_view run);
absl::Status NoArchive(std::string_view run);

// Listeners, identities.
absl::Status ListenerNotReady(std::string_view run, std::string_view fault);
absl::Status InvalidPort(int port);
absl::Status PortIsFixed(std::string_view run, int port);
absl::Status StatusListenerExists(std::string_view run);
absl::Status NoStatusListener(std::string_view run);
absl::Status OperatorNotFound(std::string_view name);
absl::Status OperatorRevoked(std::string_view name);
absl::Status LastOperator();

// Nodes and their joining.
absl::Status InvalidToken(std::string_view why);
absl::Status TokenExists(std::string_view id);
absl::Status TooManyTokens(int64_t limit);
absl::Status TokenNotFound(std::string_view id);
absl::Status InvalidLabel(std::string_view why);
absl::Status NodeNotEnrolled(std::string_view node);
absl::Status NodeRevoked(std::string_view node);
absl::Status TokenRefused();
absl::Status TokenExpired();
absl::Status TokenUsed();
absl::Status TokenOfOtherNode();
absl::Status NodeEnrolled(std::string_view node);
absl::Status TokenOfOtherKind(bool token_is_relays);
absl::Status RelayNotFound(std::string_view relay);
absl::Status RelayBelowItself(std::string_view relay, std::string_view parent);
absl::Status InvalidTarget(std::string_view why);
absl::Status ReturnRefused(std::string_view why);
absl::Status ReturnTooLate();

// Status.
absl::Status InvalidProgress(std::string_view why);
absl::Status StatusNotReady();
absl::Status InvalidHeartbeat(std::string_view why);
absl::Status NoFirstHeartbeat(absl::Duration within);
absl::Status DuplicateAgent(std::string_view node);
absl::Status TooManySenders(int64_t limit);
absl::Status InvalidCursor();
absl::Status NodeNotFound(std::string_view node);

// Relays.
absl::Status NotAttached(std::string_view who);
absl::Status RelayCutOff();
absl::Status RelayDoesNotServe(std::string_view method);
absl::Status SpoolFull(std::string_view limit);
absl::Status ProofTooOld();

// Of every service.
absl::Status Overloaded();

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_H_
