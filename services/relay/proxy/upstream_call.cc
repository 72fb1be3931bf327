#include "services/relay/proxy/upstream_call.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/connection_error.h"
#include "services/common/rpc/forwarded_metadata.h"
#include "services/common/rpc/forwarding.h"

namespace muster {
namespace {

// Longer than any call of the services takes; the deadline of the downstream call may be shorter.
constexpr absl::Duration kUnaryLimit = absl::Seconds(60);

}  // namespace

absl::StatusOr<UpstreamCall> BeginUpstreamCall(Upstream& upstream, ChannelOf channel_of,
                                               Admission& admission, const Call& call,
                                               grpc::CallbackServerContext* downstream,
                                               int64_t bytes) {
  const Caller& caller = call.caller();
  const bool as_relay = RoleOf(caller.identity) == Role::kRelay;
  std::string statement;
  if (as_relay) {
    RETURN_IF_ERROR(upstream.CheckChildRelay(caller));
  } else {
    ASSIGN_OR_RETURN(statement, upstream.StatementFor(caller));
  }
  ASSIGN_OR_RETURN(auto uri, ToUri(caller.identity));
  UpstreamCall prepared;
  prepared.channel = (upstream.*channel_of)();
  if (prepared.channel == nullptr) return errors::RelayCutOff();
  ASSIGN_OR_RETURN(prepared.ticket, admission.Enter(uri, bytes, as_relay));
  prepared.context = grpc::ClientContext::FromCallbackServerContext(*downstream);
  if (!as_relay) {
    RETURN_IF_ERROR(
        AddMetadata(*prepared.context, {{kForwardedIdentity, uri}, {kAttachStatement, statement}}));
  }
  return prepared;
}

absl::Status FromUpstream(const absl::Status& status, const absl::Status& unreachable) {
  return IsConnectionError(ReasonOf(status)) ? unreachable : status;
}

void LimitUnary(grpc::ClientContext& context) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + kUnaryLimit));
}

grpc::ServerUnaryReactor* RejectUnary(const RpcRuntime& runtime,
                                      grpc::CallbackServerContext* context,
                                      std::string_view method) {
  // It is refused whatever its size.
  return AnswerHere(runtime, context, method, {grpc::ByteBuffer(), nullptr},
                    [method](const std::shared_ptr<Call>&, Finish finish) {
                      finish(errors::RelayDoesNotServe(method));
                    });
}

}  // namespace muster
