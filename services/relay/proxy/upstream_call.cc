#include "services/relay/proxy/upstream_call.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

// Longer than any answer of the services takes; the call from below may end it earlier.
constexpr absl::Duration kUnaryLimit = absl::Seconds(60);

}  // namespace

absl::StatusOr<std::shared_ptr<UpstreamCall>> BeginUpstreamCall(
    Upstream& upstream, ChannelOf channel_of, Admission& admission, const Call& call,
    grpc::CallbackServerContext* below, int64_t bytes) {
  const Caller& caller = call.caller();
  const bool as_relay = RoleOf(caller.identity) == Role::kRelay;
  std::string statement;
  if (as_relay) {
    RETURN_IF_ERROR(upstream.CheckChildRelay(caller));
  } else {
    ASSIGN_OR_RETURN(statement, upstream.StatementFor(caller));
  }
  ASSIGN_OR_RETURN(auto uri, ToUri(caller.identity));
  auto up = std::make_shared<UpstreamCall>();
  up->channel = (upstream.*channel_of)();
  if (up->channel == nullptr) return errors::RelayCutOff();
  ASSIGN_OR_RETURN(up->ticket, admission.Enter(uri, bytes));
  up->context = grpc::ClientContext::FromCallbackServerContext(*below);
  if (!as_relay) {
    up->context->AddMetadata(kForwardedIdentity, uri);
    up->context->AddMetadata(kAttachStatement, statement);
  }
  return up;
}

absl::Status FromUpstream(const grpc::Status& status) {
  absl::Status above = FromGrpc(status);
  return ReasonOf(above) == "UNREACHABLE" ? errors::RelayCutOff() : above;
}

void BoundUnary(grpc::ClientContext& context) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + kUnaryLimit));
}

grpc::ServerUnaryReactor* RefuseUnary(const RpcRuntime& runtime,
                                      grpc::CallbackServerContext* context,
                                      std::string_view method) {
  return AnswerHere(runtime, context, method,
                    [method](const std::shared_ptr<Call>&, Finish finish) {
                      finish(errors::RelayDoesNotServe(method));
                    });
}

}  // namespace muster
