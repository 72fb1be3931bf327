// Generated from relay.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/relay.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status NotAttached(std::string_view who) {
  return MakeError(absl::StatusCode::kPermissionDenied, "NOT_ATTACHED",
                   absl::StrCat(ToAbsl(who), " is not attached to this relay, or its attach statement has expired"),
                   "Attach it here first (muster agent attach), or send to the relay it is attached to.");
}

absl::Status NoLiveStatement(std::string_view node, std::string_view relay) {
  return MakeError(absl::StatusCode::kPermissionDenied, "NOT_ATTACHED",
                   absl::StrCat("relay \"", ToAbsl(relay), "\" has no valid attach statement of \"", ToAbsl(node), "\""),
                   "Wait until its agent is attached again, or attach it: muster agent attach.");
}

absl::Status TooManyInvalidStatements(std::string_view relay) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_INVALID_STATEMENTS",
                   absl::StrCat(ToAbsl(relay), " has sent too many attach statements that cannot be verified"),
                   "Compare the clock of the relay with those of its nodes. Revoke its certificate if another program uses its key."),
                        absl::Seconds(10));
}

absl::Status RelayCutOff() {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "RELAY_CUT_OFF",
                   "this relay cannot reach its parent",
                   "Try again later; results are accepted meanwhile (OpenUpload)."),
                        absl::Seconds(5));
}

absl::Status JobsUnreachable() {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "JOBS_UNREACHABLE",
                   "the root relay cannot reach the jobs service",
                   "Try again later. If the error persists, check that the jobs service runs, and jobs_targets in the configuration of the root relay."),
                        absl::Seconds(5));
}

absl::Status RelayDoesNotServe(std::string_view method) {
  return MakeError(absl::StatusCode::kUnimplemented, "RELAY_DOES_NOT_SERVE",
                   absl::StrCat("relays do not serve ", ToAbsl(method)),
                   "Call the aggregator, the status service or the jobs service directly.");
}

absl::Status RelayStopping() {
  return WithRetryAfter(MakeError(absl::StatusCode::kUnavailable, "RELAY_STOPPING",
                   "the relay is stopping or restarting",
                   "Connect again."),
                        absl::Seconds(1));
}

absl::Status SpoolFull(std::string_view limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "SPOOL_FULL",
                   absl::StrCat("this relay cannot reach its parent, and its spool is full: ", ToAbsl(limit)),
                   "Try again later. If the error persists, raise the limits of the spool in the configuration of the relay, or repair its connection to its parent."),
                        absl::Seconds(30));
}

absl::Status SpoolDamaged(std::string_view path, std::string_view why) {
  return MakeError(absl::StatusCode::kDataLoss, "SPOOL_DAMAGED",
                   absl::StrCat(ToAbsl(path), ": ", ToAbsl(why)),
                   "Check the disk; the content of the file is lost unless its sender still has it.");
}

absl::Status InvalidAttachment(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_ATTACHMENT",
                   absl::StrCat("invalid attachment: ", ToAbsl(why)),
                   "Send messages as AttachService describes them.");
}

absl::Status StatementRefused(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "STATEMENT_REFUSED",
                   absl::StrCat("the attach statement is not accepted: ", ToAbsl(why)),
                   "Sign a statement for the relay and the key in its greeting.");
}

absl::Status StatementExpired() {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "STATEMENT_EXPIRED",
                   "the attach statement expired before a new one was received",
                   "Attach again; if that fails, check the clocks of both machines.");
}

absl::Status NoHello() {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "NO_HELLO",
                   "no hello was received within 10 s",
                   "Send the hello after the greeting of the relay.");
}

absl::Status RelayLoop(std::string_view relay, std::string_view parent) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RELAY_LOOP",
                   absl::StrCat("relay \"", ToAbsl(relay), "\" cannot attach to its descendant \"", ToAbsl(parent), "\""),
                   "Configure a parent that is not its descendant: parents in its configuration.");
}

absl::Status RelayTooDeep(std::string_view relay, int64_t limit) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RELAY_TOO_DEEP",
                   absl::StrCat("the depth of relay \"", ToAbsl(relay), "\" would exceed ", limit),
                   "Attach it to a relay that is nearer to the root.");
}

absl::Status TooManyChildren(int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_CHILDREN",
                   absl::StrCat("this relay already has ", limit, " attached nodes"),
                   "Attach to another relay, or raise max_nodes in the configuration of the relay."),
                        absl::Seconds(60));
}

absl::Status ChildTakenOver(std::string_view child) {
  return MakeError(absl::StatusCode::kAborted, "TAKEN_OVER",
                   absl::StrCat("\"", ToAbsl(child), "\" attached again; this stream is the older one"),
                   "Give each machine its own identity if two machines share one; otherwise ignore this error.");
}

absl::Status DuplicateProcess(std::string_view child) {
  return WithRetryAfter(MakeError(absl::StatusCode::kAborted, "DUPLICATE_AGENT",
                   absl::StrCat("\"", ToAbsl(child), "\" is attached by a process with the same identity that started later"),
                   "Stop one of the two processes; if this machine was copied, give the copy its own identity (muster node join)."),
                        absl::Seconds(30));
}

absl::Status ChildStuck(std::string_view child) {
  return MakeError(absl::StatusCode::kResourceExhausted, "CHILD_STUCK",
                   absl::StrCat("\"", ToAbsl(child), "\" does not read its messages"),
                   "Attach again.");
}

absl::Status IdentityRevoked(std::string_view uri) {
  return MakeError(absl::StatusCode::kUnauthenticated, "IDENTITY_REVOKED",
                   absl::StrCat(ToAbsl(uri), " was revoked"),
                   "Ask an operator to remove the node (muster node remove) and to create a new token. Then move the folder of the node away, and join again with this token.");
}

absl::Status RelayRevoked(std::string_view relay) {
  return MakeError(absl::StatusCode::kUnavailable, "RELAY_REVOKED",
                   absl::StrCat("relay \"", ToAbsl(relay), "\" was revoked"),
                   "Attach to another relay. An operator can replace it by a relay with a new token.");
}

absl::Status RelayRefused(std::string_view why) {
  return MakeError(absl::StatusCode::kUnauthenticated, "RELAY_REFUSED",
                   absl::StrCat("the relay is not accepted: ", ToAbsl(why)),
                   "Check the addresses of the relays, and that they belong to this fleet.");
}

absl::Status RelayNotInTree(std::string_view relay) {
  return MakeError(absl::StatusCode::kNotFound, "RELAY_NOT_FOUND",
                   absl::StrCat("\"", ToAbsl(relay), "\" is not a relay that is a descendant of this relay"),
                   "Name a relay: muster nodes lists relays, too.");
}

absl::Status RelayNotReached(std::string_view relay, std::string_view why) {
  return MakeError(absl::StatusCode::kUnavailable, "RELAY_NOT_REACHED",
                   absl::StrCat("relay ", ToAbsl(relay), " is unreachable: ", ToAbsl(why)),
                   "Try again; muster nodes shows whether it is attached.");
}

absl::Status RelayFailed(std::string_view relay, std::string_view fault) {
  return MakeError(absl::StatusCode::kInternal, "RELAY_FAILED",
                   absl::StrCat("relay ", ToAbsl(relay), " failed: ", ToAbsl(fault)),
                   "Read the log of that relay.");
}

}  // namespace muster::errors
