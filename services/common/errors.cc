#include "services/common/errors.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {
namespace {

using Code = absl::StatusCode;

template <typename... Parts>
std::string Text(const Parts&... parts) {
  return absl::StrCat(parts...);
}

absl::string_view A(std::string_view s) { return ToAbsl(s); }

}  // namespace

absl::Status RunNotFound(std::string_view run) {
  return MakeError(Code::kNotFound, "RUN_NOT_FOUND", Text("there is no run \"", A(run), "\""),
                   "List the runs: muster runs.");
}

absl::Status RunNotEnded(std::string_view run) {
  return MakeError(Code::kFailedPrecondition, "RUN_NOT_ENDED",
                   Text("run ", A(run), " has not ended"), "Cancel it first, or wait for its end.");
}

absl::Status RunEnded(std::string_view run) {
  return MakeError(Code::kFailedPrecondition, "RUN_ENDED",
                   Text("run ", A(run), " has ended and its authority is gone"),
                   "Start a new run.");
}

absl::Status RunSealed(std::string_view run) {
  return MakeError(Code::kFailedPrecondition, "RUN_SEALED",
                   Text("run ", A(run), " is sealed: nothing can be added"),
                   "Deliver to a newer run; the archive says what this pair has.");
}

absl::Status RunCancelled(std::string_view run) {
  return MakeError(Code::kFailedPrecondition, "RUN_CANCELLED",
                   Text("run ", A(run), " was cancelled or has failed"), "Start a new run.");
}

absl::Status PairNotPlanned(std::string_view run, std::string_view plugin, std::string_view node) {
  return MakeError(
      Code::kPermissionDenied, "PAIR_NOT_PLANNED",
      Text("the plan of run ", A(run), " has no result of plugin \"", A(plugin), "\" from node \"",
           A(node), "\""),
      "Check both names against the run's plan (muster status); a plugin that runs once delivers "
      "for the node \"global\".");
}

absl::Status InvalidPlugin(std::string_view plugin, std::string_view why) {
  return MakeError(Code::kInvalidArgument, "INVALID_PLUGIN",
                   Text("plugin ", A(plugin), ": ", A(why)),
                   "Correct the definition; docs/plugins.md describes it.");
}

absl::Status InvalidTimeout(std::string_view field, std::string_view limits) {
  return MakeError(Code::kInvalidArgument, "INVALID_TIMEOUT",
                   Text(A(field), " is outside ", A(limits)), "Give a value within these limits.");
}

absl::Status EmptyPlan() {
  return MakeError(Code::kInvalidArgument, "EMPTY_PLAN",
                   "the plan expects no result: there is no plugin, or no node for a plugin that "
                   "runs on each node",
                   "Name at least one plugin, and nodes unless every plugin runs once.");
}

absl::Status PlanTooLarge(int64_t pairs, int64_t limit) {
  return MakeError(Code::kInvalidArgument, "PLAN_TOO_LARGE",
                   Text("the plan has ", pairs, " results, more than ", limit),
                   "Split it into several runs.");
}

absl::Status TextTooLong(std::string_view field, int64_t limit) {
  return MakeError(Code::kInvalidArgument, "TEXT_TOO_LONG",
                   Text(A(field), " is longer than ", limit, " bytes"), "Shorten it.");
}

absl::Status InvalidPageToken() {
  return MakeError(Code::kInvalidArgument, "INVALID_PAGE_TOKEN",
                   "the page token was not given by this service", "Start again without one.");
}

absl::Status InvalidPageSize(int64_t limit) {
  return MakeError(Code::kInvalidArgument, "INVALID_PAGE_SIZE",
                   Text("the page size is not between 0 and ", limit), "Choose a smaller page.");
}

absl::Status ResultConflict(std::string_view plugin, std::string_view node) {
  return MakeError(Code::kAlreadyExists, "RESULT_CONFLICT",
                   Text("another result of plugin \"", A(plugin), "\" from node \"", A(node),
                        "\" is committed already; this one was not stored"),
                   "Nothing: the first result counts. The audit log names both deliverers.");
}

absl::Status ResultNotThere(std::string_view plugin, std::string_view node) {
  return MakeError(Code::kNotFound, "RESULT_NOT_THERE",
                   Text("plugin \"", A(plugin), "\" has no result from node \"", A(node), "\" yet"),
                   "Wait for it: muster status --watch.");
}

absl::Status ResultReplaced(int64_t asked, int64_t current) {
  return MakeError(Code::kFailedPrecondition, "RESULT_REPLACED",
                   Text("generation ", asked, " is not the current one, ", current),
                   "Read again from the beginning.");
}

absl::Status UploadNotFound(std::string_view upload) {
  return MakeError(Code::kNotFound, "UPLOAD_NOT_FOUND",
                   Text("there is no open upload \"", A(upload), "\""),
                   "Open the upload again: the answer says where to go on.");
}

absl::Status StaleAttempt(int64_t attempt) {
  return MakeError(Code::kAborted, "TAKEN_OVER",
                   Text("a later attempt than ", attempt, " has begun to deliver this result"),
                   "Stop this sender: another one has taken over.");
}

absl::Status TakenOver(std::string_view upload) {
  return MakeError(Code::kAborted, "TAKEN_OVER",
                   Text("another stream has taken over upload ", A(upload)),
                   "Stop this sender, or open the upload again if it is the only one.");
}

absl::Status TooManyUploads(int64_t limit) {
  return WithRetryAfter(
      MakeError(Code::kResourceExhausted, "TOO_MANY_UPLOADS",
                Text("more than ", limit, " uploads are open"), "Try again later."),
      absl::Seconds(5));
}

absl::Status UploadStalled() {
  return MakeError(Code::kDeadlineExceeded, "UPLOAD_STALLED",
                   "the upload brought less than 1 KiB/s for 60 s",
                   "Open the upload again: it goes on where it stopped.");
}

absl::Status OffsetTooHigh(int64_t offset, int64_t expected) {
  return MakeError(Code::kOutOfRange, "OFFSET_TOO_HIGH",
                   Text("offset ", offset, " lies beyond ", expected),
                   Text("Go on from byte ", expected, "."));
}

absl::Status InvalidOffset(int64_t offset) {
  return MakeError(Code::kInvalidArgument, "INVALID_OFFSET",
                   Text("offset ", offset, " is not a position in a file"),
                   "Offsets count raw bytes from 0.");
}

absl::Status ChunkTooLarge(int64_t size, int64_t limit) {
  return MakeError(Code::kInvalidArgument, "CHUNK_TOO_LARGE",
                   Text("a chunk of ", size, " raw bytes; at most ", limit, " are taken"),
                   "Keep to the chunk_max of the open upload.");
}

absl::Status InvalidChunk(std::string_view why) {
  return MakeError(Code::kInvalidArgument, "INVALID_CHUNK", Text("chunk refused: ", A(why)),
                   "Send what UploadRequest describes: start, chunks in order, finish.");
}

absl::Status CrcMismatch(std::string_view of) {
  return MakeError(Code::kDataLoss, "CRC_MISMATCH",
                   Text("the CRC32C of the ", A(of), " does not match its bytes"),
                   "Open the upload again and send from the offset it names; if it happens again, "
                   "suspect the memory or the network of the sender.");
}

absl::Status DigestMismatch() {
  return MakeError(Code::kDataLoss, "DIGEST_MISMATCH",
                   "the SHA-256 of what arrived is not the one that was named",
                   "Start the delivery again with a new attempt.");
}

absl::Status SizeMismatch(int64_t said, int64_t received) {
  return MakeError(Code::kDataLoss, "SIZE_MISMATCH",
                   Text(received, " bytes arrived, not the ", said, " that were named"),
                   "Open the upload again and go on from the offset it names.");
}

absl::Status TooLargeForSubmit(int64_t size, int64_t limit) {
  return MakeError(Code::kInvalidArgument, "TOO_LARGE_FOR_SUBMIT",
                   Text(size, " bytes; SubmitResult takes at most ", limit),
                   "Use OpenUpload and Upload.");
}

absl::Status InvalidSignature(std::string_view why) {
  return MakeError(Code::kPermissionDenied, "INVALID_SIGNATURE",
                   Text("the signature over the result is not accepted: ", A(why)),
                   "Sign with the key of the delivering node, over the text that the API states.");
}

absl::Status SignatureRequired(std::string_view node) {
  return MakeError(Code::kPermissionDenied, "SIGNATURE_REQUIRED",
                   Text("a relay brought a result of node \"", A(node), "\" without its signature"),
                   "Sign what is delivered through relays: the client library does so.");
}

absl::Status ArchiveNotReady(std::string_view run) {
  return MakeError(Code::kFailedPrecondition, "ARCHIVE_NOT_READY",
                   Text("run ", A(run), " is not complete yet"),
                   "Wait for it: muster status --watch.");
}

absl::Status NoArchive(std::string_view run) {
  return MakeError(Code::kFailedPrecondition, "NO_ARCHIVE",
                   Text("run ", A(run), " ended without an archive"),
                   "Read single results, as far as they were committed: muster results.");
}

absl::Status ListenerNotReady(std::string_view run, std::string_view fault) {
  return WithRetryAfter(
      MakeError(Code::kUnavailable, "LISTENER_NOT_READY",
                Text("the listener of run ", A(run), " is not open",
                     fault.empty() ? absl::string_view("") : absl::string_view(": "), A(fault)),
                "Check that the gateway runs and that its port range has a free port."),
      absl::Seconds(2));
}

absl::Status InvalidPort(int port) {
  return MakeError(Code::kInvalidArgument, "INVALID_PORT", Text(port, " is no port"),
                   "Ports go from 1 to 65535.");
}

absl::Status PortIsFixed(std::string_view run, int port) {
  return MakeError(Code::kFailedPrecondition, "PORT_IS_FIXED",
                   Text("the listener of run ", A(run), " has port ", port, " for ever"),
                   "Open that port.");
}

absl::Status StatusListenerExists(std::string_view run) {
  return MakeError(Code::kAlreadyExists, "STATUS_LISTENER_EXISTS",
                   Text("run ", A(run), " has a status listener of its own already"),
                   "Use that one: the run says where it is (muster status).");
}

absl::Status NoStatusListener(std::string_view run) {
  return MakeError(Code::kNotFound, "NO_STATUS_LISTENER",
                   Text("run ", A(run), " has no status listener of its own"),
                   "Use the fleet's, or start a run that brings a certificate.");
}

absl::Status OperatorNotFound(std::string_view name) {
  return MakeError(Code::kNotFound, "OPERATOR_NOT_FOUND",
                   Text("there is no operator \"", A(name), "\""),
                   "List the operators: muster operator list.");
}

absl::Status OperatorRevoked(std::string_view name) {
  return MakeError(Code::kFailedPrecondition, "OPERATOR_REVOKED",
                   Text("operator \"", A(name), "\" was revoked; its name is never given again"),
                   "Choose another name.");
}

absl::Status LastOperator() {
  return MakeError(Code::kFailedPrecondition, "LAST_OPERATOR",
                   "this is the last operator: nobody could administer the fleet any more",
                   "Add another operator first: muster operator add NAME.");
}

absl::Status InvalidToken(std::string_view why) {
  return MakeError(Code::kInvalidArgument, "INVALID_TOKEN", Text("join token: ", A(why)),
                   "Create tokens with: muster token create.");
}

absl::Status TokenExists(std::string_view id) {
  return MakeError(Code::kAlreadyExists, "TOKEN_EXISTS",
                   Text("there is a join token ", A(id), " already"),
                   "Choose 32 hex digits at random.");
}

absl::Status TooManyTokens(int64_t limit) {
  return MakeError(Code::kResourceExhausted, "TOO_MANY_TOKENS",
                   Text("there are ", limit, " join tokens that have not been forgotten yet"),
                   "Create one token for several nodes (--count), or wait: a token is forgotten a "
                   "week after its end.");
}

absl::Status TokenNotFound(std::string_view id) {
  return MakeError(Code::kNotFound, "TOKEN_NOT_FOUND",
                   Text("there is no join token \"", A(id), "\""),
                   "List the tokens: muster token list.");
}

absl::Status InvalidLabel(std::string_view why) {
  return MakeError(Code::kInvalidArgument, "INVALID_LABEL", Text("label: ", A(why)),
                   "Write it as key=value with [A-Za-z0-9._/-] on both sides, 1 to 253 characters "
                   "in the key and at most as many in the value; a node has at most 64.");
}

absl::Status NodeNotEnrolled(std::string_view node) {
  return MakeError(Code::kNotFound, "NODE_NOT_ENROLLED",
                   Text("no node \"", A(node), "\" is enrolled"),
                   "List the nodes: muster nodes; let it join with: muster token create.");
}

absl::Status NodeRevoked(std::string_view node) {
  return MakeError(
      Code::kPermissionDenied, "NODE_REVOKED", Text("node \"", A(node), "\" was revoked"),
      "An operator who wants it back removes it (muster node remove) and creates a new "
      "token.");
}

absl::Status TokenRefused() {
  return MakeError(Code::kPermissionDenied, "TOKEN_REFUSED",
                   "this fleet has no such join token, or the request was not signed with its key",
                   "Ask an operator for a new token: muster token create.");
}

absl::Status TokenExpired() {
  return MakeError(Code::kPermissionDenied, "TOKEN_EXPIRED", "the join token's time is over",
                   "Ask an operator for a new token: muster token create --ttl 15m.");
}

absl::Status TokenUsed() {
  return MakeError(
      Code::kPermissionDenied, "TOKEN_USED",
      "the join token has been used up, by other keys than this one",
      "If nobody else should have had it, tell an operator: muster token list says who "
      "joined with it. Else ask for a new token.");
}

absl::Status TokenOfOtherNode() {
  return MakeError(Code::kPermissionDenied, "TOKEN_OF_OTHER_NODE",
                   "the join token, or what this key joined as before, is for another name",
                   "Join with the name in the token, or ask for a token for this one.");
}

absl::Status NodeEnrolled(std::string_view node) {
  return MakeError(Code::kPermissionDenied, "NODE_ENROLLED",
                   Text("a node \"", A(node), "\" is enrolled already"),
                   "Choose another name, or have a token made that names this one: muster token "
                   "create --node NAME.");
}

absl::Status TokenOfOtherKind(bool token_is_relays) {
  return MakeError(Code::kPermissionDenied, "TOKEN_OF_OTHER_KIND",
                   token_is_relays ? "the join token is a relay's" : "the join token is a node's",
                   token_is_relays
                       ? "Join with it as a relay: muster relay join."
                       : "Join with it as a node: muster node join; a relay's token is made with "
                         "muster token create --relay NAME.");
}

absl::Status RelayNotFound(std::string_view relay) {
  return MakeError(Code::kNotFound, "RELAY_NOT_FOUND",
                   Text("no relay \"", A(relay), "\" has joined, or it is revoked"),
                   "List the relays: muster nodes; let it join first: muster token create --relay "
                   "NAME.");
}

absl::Status RelayBelowItself(std::string_view relay, std::string_view parent) {
  return MakeError(
      Code::kFailedPrecondition, "RELAY_LOOP",
      Text("relay \"", A(parent), "\" hangs below \"", A(relay), "\" and cannot be its parent"),
      "Choose parents that lead to the centre without it: muster nodes.");
}

absl::Status InvalidTarget(std::string_view why) {
  return MakeError(Code::kInvalidArgument, "INVALID_TARGET", Text("address of a relay: ", A(why)),
                   "Give 1 to 16 addresses, host:port each.");
}

absl::Status ReturnRefused(std::string_view why) {
  return MakeError(Code::kUnauthenticated, "RETURN_REFUSED",
                   Text("the certificate that ended: ", A(why)),
                   "Join again with a new token: muster token create --node NAME.");
}

absl::Status ReturnTooLate() {
  return MakeError(Code::kPermissionDenied, "RETURN_TOO_LATE",
                   "the certificate ended over a week ago",
                   "Join again with a new token: muster token create --node NAME.");
}

absl::Status InvalidProgress(std::string_view why) {
  return MakeError(Code::kInvalidArgument, "INVALID_PROGRESS", Text("progress refused: ", A(why)),
                   "Counts go from 0 to 10^12, and text is UTF-8.");
}

absl::Status StatusNotReady() {
  return WithRetryAfter(MakeError(Code::kUnavailable, "STATUS_NOT_READY",
                                  "the status service has not caught up with the aggregator yet",
                                  "Try again in a moment."),
                        absl::Seconds(1));
}

absl::Status InvalidHeartbeat(std::string_view why) {
  return MakeError(Code::kInvalidArgument, "INVALID_HEARTBEAT", Text("heartbeat: ", A(why)),
                   "Send what HeartbeatService asks for; the client libraries do.");
}

absl::Status NoFirstHeartbeat(absl::Duration within) {
  return MakeError(Code::kDeadlineExceeded, "NO_FIRST_HEARTBEAT",
                   Text("no heartbeat came within ", absl::FormatDuration(within),
                        " of the beginning of the stream"),
                   "Send the first heartbeat when the stream begins.");
}

absl::Status DuplicateAgent(std::string_view node) {
  return MakeError(
      Code::kAborted, "DOUBLE_AGENT",
      Text("a younger process sends heartbeats for node \"", A(node), "\" with this identity"),
      "Stop one of the two agents; if this machine was copied, give the copy an identity of its "
      "own.");
}

absl::Status TooManySenders(int64_t limit) {
  return WithRetryAfter(
      MakeError(Code::kResourceExhausted, "TOO_MANY_SENDERS",
                Text("the status service knows ", limit, " senders of heartbeats already"),
                "Raise heartbeats.max_senders in the status service's configuration."),
      absl::Minutes(1));
}

absl::Status InvalidCursor() {
  return MakeError(Code::kInvalidArgument, "INVALID_CURSOR",
                   "the cursor was not given by this service", "Start again without one.");
}

absl::Status NodeNotFound(std::string_view node) {
  return MakeError(Code::kNotFound, "NODE_NOT_FOUND",
                   Text("no run plans node \"", A(node), "\", and it was never heard of"),
                   "List the nodes: GET /api/v1/nodes, or StatusService.ListNodes.");
}

absl::Status NotAttached(std::string_view who) {
  return MakeError(
      Code::kPermissionDenied, "NOT_ATTACHED",
      Text(A(who), " does not hang below this relay, or its word for the relay has ended"),
      "Attach it here first (muster agent attach), or send to the relay it is attached "
      "to.");
}

absl::Status RelayCutOff() {
  return WithRetryAfter(
      MakeError(Code::kUnavailable, "RELAY_CUT_OFF", "this relay has no way to the centre now",
                "Nothing: it is tried again. Results can be left here meanwhile (OpenUpload)."),
      absl::Seconds(5));
}

absl::Status RelayDoesNotServe(std::string_view method) {
  return MakeError(Code::kUnimplemented, "RELAY_DOES_NOT_SERVE",
                   Text("relays do not serve ", A(method)),
                   "Call the aggregator, or the status service, itself.");
}

absl::Status SpoolFull(std::string_view limit) {
  return WithRetryAfter(
      MakeError(Code::kResourceExhausted, "SPOOL_FULL",
                Text("this relay has no way to the centre now, and its spool is full: ", A(limit)),
                "Nothing: it is tried again. If it lasts, raise the spool's limits in the relay's "
                "configuration, or mend its way to the centre."),
      absl::Seconds(30));
}

absl::Status ProofTooOld() {
  return MakeError(Code::kPermissionDenied, "PROOF_TOO_OLD",
                   "a relay took this result more than 8 days ago, or in the future",
                   "Compare the clocks of relay and aggregator; what is older is not taken.");
}

absl::Status Overloaded() {
  return WithRetryAfter(
      MakeError(Code::kResourceExhausted, "OVERLOADED",
                "the service has more requests waiting than it can queue", "Try again later."),
      absl::Seconds(1));
}

}  // namespace muster::errors
