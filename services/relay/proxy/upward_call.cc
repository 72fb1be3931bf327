#include "services/relay/proxy/upward_call.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "services/common/base/error.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

// Longer than any answer of the services takes; the call from below may end it earlier.
constexpr absl::Duration kUnaryLimit = absl::Seconds(60);

}  // namespace

absl::StatusOr<std::shared_ptr<UpwardCall>> BeginUpward(WayUp& way, ChannelOf channel_of,
                                                        Admission& admission, const Call& call,
                                                        grpc::CallbackServerContext* below,
                                                        int64_t bytes) {
  const Caller& caller = call.caller();
  const bool as_relay = RoleOf(caller.identity) == Role::kRelay;
  std::string statement;
  if (as_relay) {
    if (auto status = way.CheckChildRelay(caller); !status.ok()) return status;
  } else {
    auto found = way.StatementFor(caller);
    if (!found.ok()) return found.status();
    statement = *std::move(found);
  }
  auto uri = ToUri(caller.identity);
  if (!uri.ok()) return uri.status();
  auto up = std::make_shared<UpwardCall>();
  up->channel = (way.*channel_of)();
  if (up->channel == nullptr) return errors::RelayCutOff();
  auto ticket = admission.Enter(*uri, bytes);
  if (!ticket.ok()) return ticket.status();
  up->ticket = *std::move(ticket);
  up->context = grpc::ClientContext::FromCallbackServerContext(*below);
  if (!as_relay) {
    up->context->AddMetadata(kForwardedIdentity, *uri);
    up->context->AddMetadata(kAttachStatement, statement);
  }
  return up;
}

absl::Status FromAbove(const grpc::Status& status) {
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
