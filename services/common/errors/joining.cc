// Generated from joining.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/joining.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status OperatorNotFound(std::string_view name) {
  return MakeError(absl::StatusCode::kNotFound, "OPERATOR_NOT_FOUND",
                   absl::StrCat("operator \"", ToAbsl(name), "\" not found"),
                   "List the operators: muster operator list.");
}

absl::Status OperatorRevoked(std::string_view name) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "OPERATOR_REVOKED",
                   absl::StrCat("operator \"", ToAbsl(name), "\" was revoked; the name cannot be used again"),
                   "Choose another name.");
}

absl::Status OwnOperator(std::string_view name) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "OWN_OPERATOR",
                   absl::StrCat("operator \"", ToAbsl(name), "\" cannot revoke itself"),
                   "Revoke it as another operator. Add one first if there is none: muster operator add NAME.");
}

absl::Status InvalidToken(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_TOKEN",
                   absl::StrCat("invalid join token: ", ToAbsl(why)),
                   "Correct the arguments; muster token create --help describes them.");
}

absl::Status InvalidTokenFile(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_TOKEN_FILE",
                   absl::StrCat("invalid join token: ", ToAbsl(why)),
                   "Use the unchanged file that `muster token create` wrote, or ask an operator for a new one.");
}

absl::Status TokenExists(std::string_view id) {
  return MakeError(absl::StatusCode::kAlreadyExists, "TOKEN_EXISTS",
                   absl::StrCat("join token ", ToAbsl(id), " already exists"),
                   "Choose a new id of 32 random hex digits.");
}

absl::Status TooManyTokens(int64_t limit) {
  return MakeError(absl::StatusCode::kResourceExhausted, "TOO_MANY_TOKENS",
                   absl::StrCat("the aggregator already has ", limit, " join tokens"),
                   "Create one token for several nodes (--count), or wait: a token is deleted a week after it expires.");
}

absl::Status TokenNotFound(std::string_view id) {
  return MakeError(absl::StatusCode::kNotFound, "TOKEN_NOT_FOUND",
                   absl::StrCat("join token \"", ToAbsl(id), "\" not found"),
                   "List the tokens: muster token list.");
}

absl::Status InvalidLabel(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_LABEL",
                   absl::StrCat("invalid label: ", ToAbsl(why)),
                   "Write key=value with [A-Za-z0-9._/-] on both sides, 1 to 253 characters in the key and at most as many in the value, and at most 64 labels for a node.");
}

absl::Status NodeNotEnrolled(std::string_view node) {
  return MakeError(absl::StatusCode::kNotFound, "NODE_NOT_ENROLLED",
                   absl::StrCat("node \"", ToAbsl(node), "\" is not enrolled"),
                   "List the nodes: muster nodes; create a token for a new one: muster token create.");
}

absl::Status RenewalLimit(std::string_view uri, int64_t limit) {
  return WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "RENEWAL_LIMIT",
                   absl::StrCat(ToAbsl(uri), " already received ", limit, " certificates within the last hour"),
                   "Use the newest certificate. Find the process that renews it again and again, and restart that process only after its disk accepts files."),
                        absl::Seconds(60));
}

absl::Status CertificateRevoked(std::string_view uri) {
  return MakeError(absl::StatusCode::kPermissionDenied, "CERTIFICATE_REVOKED",
                   absl::StrCat(ToAbsl(uri), " or the certificate that asks was revoked, so it is not renewed"),
                   "Ask an operator of the fleet for a new certificate.");
}

absl::Status NodeRevoked(std::string_view node) {
  return MakeError(absl::StatusCode::kPermissionDenied, "NODE_REVOKED",
                   absl::StrCat("node \"", ToAbsl(node), "\" was revoked"),
                   "Ask an operator to remove the node (muster node remove) and to create a new token. Then move the folder of the node away, and join again with this token.");
}

absl::Status TokenForRevokedNode(std::string_view node) {
  return MakeError(absl::StatusCode::kPermissionDenied, "NODE_REVOKED",
                   absl::StrCat("node \"", ToAbsl(node), "\" was revoked"),
                   absl::StrCat("Remove the node first (muster node remove ", ToAbsl(node), "), then create the token. On its machine, move the folder of the node away before it joins again."));
}

absl::Status TokenRefused() {
  return MakeError(absl::StatusCode::kPermissionDenied, "TOKEN_REFUSED",
                   "the join token is revoked or unknown to this fleet, or the request was not signed with its key",
                   "Ask an operator for a new token: muster token create.");
}

absl::Status TokenExpired() {
  return MakeError(absl::StatusCode::kPermissionDenied, "TOKEN_EXPIRED",
                   "the join token has expired",
                   "Ask an operator for a new token: muster token create --node NODE -o FILE (or --count N, --relay NAME).");
}

absl::Status TokenUsed() {
  return MakeError(absl::StatusCode::kPermissionDenied, "TOKEN_USED",
                   "the join token has no uses left",
                   "Ask an operator for a new token. If this one may have been stolen, report it: muster token list shows the nodes that joined with it.");
}

absl::Status TokenOfOtherNode() {
  return MakeError(absl::StatusCode::kPermissionDenied, "TOKEN_OF_OTHER_NODE",
                   "the join token, or the earlier enrolment of this key, is for another name",
                   "Join with the name in the token, or ask for a token for this name.");
}

absl::Status NodeEnrolled(std::string_view node) {
  return MakeError(absl::StatusCode::kPermissionDenied, "NODE_ENROLLED",
                   absl::StrCat("node \"", ToAbsl(node), "\" is already enrolled"),
                   "Choose another name, or ask for a token for this one: muster token create --node NAME.");
}

absl::Status NameOfOtherKind(std::string_view name, std::string_view kind) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NAME_OF_OTHER_KIND",
                   absl::StrCat("\"", ToAbsl(name), "\" is enrolled as a ", ToAbsl(kind)),
                   absl::StrCat("Choose another name, or remove the ", ToAbsl(kind), " first: muster node remove ", ToAbsl(name), "."));
}

absl::Status TokenIsForRelay() {
  return MakeError(absl::StatusCode::kPermissionDenied, "TOKEN_OF_OTHER_KIND",
                   "the join token is for a relay",
                   "Join with it as a relay: muster relay join.");
}

absl::Status TokenIsForNode() {
  return MakeError(absl::StatusCode::kPermissionDenied, "TOKEN_OF_OTHER_KIND",
                   "the join token is for a node",
                   "Join with it as a node (muster node join), or create a token for a relay: muster token create --relay NAME.");
}

absl::Status RelayNotFound(std::string_view relay) {
  return MakeError(absl::StatusCode::kNotFound, "RELAY_NOT_FOUND",
                   absl::StrCat("relay \"", ToAbsl(relay), "\" has not joined, or was revoked"),
                   "List the relays: muster nodes; create a token for a new one: muster token create --relay NAME.");
}

absl::Status RelayWouldLoop(std::string_view relay, std::string_view parent) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "RELAY_LOOP",
                   absl::StrCat("relay \"", ToAbsl(parent), "\" is a descendant of \"", ToAbsl(relay), "\" and cannot be its parent"),
                   "Choose parents that lead to the root without this relay: muster nodes.");
}

absl::Status InvalidTarget(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_TARGET",
                   absl::StrCat("invalid address of a relay: ", ToAbsl(why)),
                   "Give 1 to 16 addresses, host:port each.");
}

absl::Status ReturnRefused(std::string_view why) {
  return MakeError(absl::StatusCode::kUnauthenticated, "RETURN_REFUSED",
                   absl::StrCat("the expired certificate is not accepted: ", ToAbsl(why)),
                   "Join again with a new token: muster token create --node NAME.");
}

absl::Status ReturnTooLate() {
  return MakeError(absl::StatusCode::kPermissionDenied, "RETURN_TOO_LATE",
                   "the certificate expired more than a week ago",
                   "Join again with a new token: muster token create --node NAME.");
}

absl::Status NoJoinTarget(std::string_view folder) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_JOIN_TARGET",
                   absl::StrCat(ToAbsl(folder), " contains no address for the renewal of its certificate"),
                   "Add the fleet's join addresses to its join_targets.");
}

absl::Status JoinAnswerUnusable(std::string_view why) {
  return MakeError(absl::StatusCode::kUnauthenticated, "JOIN_ANSWER_UNUSABLE",
                   absl::StrCat("invalid join response: ", ToAbsl(why)),
                   "Join again; if it fails again, ask an operator for a new token.");
}

absl::Status AlreadyJoined(std::string_view folder) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "ALREADY_JOINED",
                   absl::StrCat(ToAbsl(folder), " already contains an identity"),
                   "Name another folder. To join again, move this folder away first, because it may also contain settings and data that exist nowhere else.");
}

absl::Status InvalidMemberFile(std::string_view path, std::string_view fault) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "INVALID_MEMBER_FILE",
                   absl::StrCat(ToAbsl(path), ": ", ToAbsl(fault)),
                   "Restore it, or remove the folder and join again.");
}

absl::Status NoMemberFile(std::string_view folder) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_JOINED",
                   absl::StrCat(ToAbsl(folder), " contains neither node.json nor relay.json"),
                   "Join the fleet first: muster node join, or muster relay join.");
}

absl::Status NotANodeFolder(std::string_view folder, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_JOINED",
                   absl::StrCat(ToAbsl(folder), " ", ToAbsl(why)),
                   "Join the fleet with a new token and an empty folder: muster node join --token-file FILE.");
}

absl::Status NoRelayIdentity(std::string_view folder, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_RELAY_IDENTITY",
                   absl::StrCat(ToAbsl(folder), " ", ToAbsl(why)),
                   "Join as a relay: muster token create --relay NAME, then muster relay join.");
}

absl::Status InvalidLink(std::string_view value) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_LINK",
                   absl::StrCat("\"", ToAbsl(value), "\" is no link to the fleet"),
                   "Give auto, direct, or the address of a gateway as wss://HOST:PORT.");
}

}  // namespace muster::errors
