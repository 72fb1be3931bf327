#include "services/relay/errors.h"

#include <string>

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

absl::Status InvalidAttachment(std::string_view why) {
  return MakeError(Code::kInvalidArgument, "INVALID_ATTACHMENT", Text("attachment: ", A(why)),
                   "Send what AttachService asks for; the agent and the relay do.");
}

absl::Status StatementRefused(std::string_view why) {
  return MakeError(Code::kPermissionDenied, "STATEMENT_REFUSED",
                   Text("the statement that this relay may speak for its child: ", A(why)),
                   "Sign one for the relay and the key that its greeting names.");
}

absl::Status StatementExpired() {
  return MakeError(Code::kDeadlineExceeded, "STATEMENT_EXPIRED",
                   "no new statement came before the old one ended",
                   "Attach again; if that does not help, compare the clocks.");
}

absl::Status NoHello() {
  return MakeError(Code::kDeadlineExceeded, "NO_HELLO", "no hello came within 10 s",
                   "Send it when the relay has greeted.");
}

absl::Status RelayLoop(std::string_view relay, std::string_view parent) {
  return MakeError(
      Code::kFailedPrecondition, "RELAY_LOOP",
      Text("relay \"", A(relay), "\" cannot hang below \"", A(parent), "\", which is below it"),
      "Give it a parent that is not below it: parents in its configuration.");
}

absl::Status RelayTooDeep(std::string_view relay, size_t limit) {
  return MakeError(Code::kFailedPrecondition, "RELAY_TOO_DEEP",
                   Text("relay \"", A(relay), "\" would be more than ", limit, " relays deep"),
                   "Let it hang below a relay that is nearer to the centre.");
}

absl::Status TooManyChildren(int64_t limit) {
  return WithRetryAfter(MakeError(Code::kResourceExhausted, "TOO_MANY_CHILDREN",
                                  Text("this relay has ", limit, " nodes below it already"),
                                  "Attach to another relay, or raise max_nodes in its file."),
                        absl::Minutes(1));
}

absl::Status ChildTakenOver(std::string_view child) {
  return MakeError(Code::kAborted, "TAKEN_OVER",
                   Text("\"", A(child), "\" attached again; this stream is the older one"),
                   "If nobody restarted it, two machines have one identity: give one its own.");
}

absl::Status ChildStuck(std::string_view child) {
  return MakeError(Code::kResourceExhausted, "CHILD_STUCK",
                   Text("\"", A(child), "\" takes no messages"), "Attach again.");
}

absl::Status IdentityRevoked(std::string_view uri) {
  return MakeError(Code::kUnauthenticated, "IDENTITY_REVOKED", Text(A(uri), " was revoked"),
                   "An operator who wants it back removes it (muster node remove) and lets it "
                   "join again.");
}

absl::Status NotAttached(std::string_view node, std::string_view relay) {
  return MakeError(Code::kPermissionDenied, "NOT_ATTACHED",
                   Text("relay \"", A(relay), "\" holds no live statement of \"", A(node), "\""),
                   "A relay speaks only for nodes that are attached: muster agent attach.");
}

absl::Status JobNotFound(std::string_view job) {
  return MakeError(Code::kNotFound, "JOB_NOT_FOUND", Text("there is no job \"", A(job), "\""),
                   "List the jobs: muster job list.");
}

absl::Status JobExists(std::string_view job) {
  return MakeError(Code::kAlreadyExists, "JOB_EXISTS",
                   Text("job ", A(job), " is there, with another command or other targets"),
                   "Use a new id for a new command.");
}

absl::Status TooManyJobs(int64_t limit) {
  return WithRetryAfter(
      MakeError(Code::kResourceExhausted, "TOO_MANY_JOBS", Text(limit, " jobs are running already"),
                "Wait until some have ended, or cancel them: muster job list."),
      absl::Seconds(10));
}

absl::Status InvalidCommand(std::string_view why) {
  return MakeError(Code::kInvalidArgument, "INVALID_COMMAND", Text("the command: ", A(why)),
                   "jobs.proto says what a command is; muster exec makes one.");
}

absl::Status CommandRefused(std::string_view why) {
  return MakeError(Code::kPermissionDenied, "COMMAND_REFUSED", Text("the command: ", A(why)),
                   "Sign it yourself, with a certificate of IssueCommandCertificate that lives.");
}

absl::Status InvalidPosition(int64_t position) {
  return MakeError(Code::kOutOfRange, "INVALID_POSITION",
                   Text("no record of the job begins at ", position),
                   "Use a position that WatchJob gave, or 0.");
}

absl::Status NotTheRoot(std::string_view relay) {
  return MakeError(Code::kFailedPrecondition, "NOT_THE_ROOT",
                   Text("relay \"", A(relay), "\" is not the one at the centre"),
                   "Ask the relay at the centre: relay_targets in the operator's context.");
}

absl::Status NoCommandAuthority() {
  return WithRetryAfter(MakeError(Code::kUnavailable, "NO_COMMAND_AUTHORITY",
                                  "the relay has not heard from the aggregator yet who may sign "
                                  "commands",
                                  "Try again in a moment."),
                        absl::Seconds(1));
}

}  // namespace muster::errors
