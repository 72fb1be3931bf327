#include "services/relay/proxy/join_forward.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

// A rack that is switched on joins within seconds. A flood is limited to this.
constexpr double kBurst = 200;
constexpr double kPerSecond = 50;

constexpr int64_t kCalls = 64;
constexpr int64_t kBytesOfOne = 64 * 1024;

}  // namespace

bool TokenBucket::TryTake() {
  MutexLock lock(mutex_);
  const absl::Duration now = clock_.MonotonicNow();
  if (seen_ > absl::ZeroDuration()) {
    left_ = std::min(burst_, left_ + absl::ToDoubleSeconds(now - seen_) * per_second_);
  }
  seen_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

JoinForward::JoinForward(Upstream& upstream, const RpcRuntime& runtime, const Clock& clock,
                         Metrics& metrics)
    : upstream_(upstream),
      runtime_(runtime),
      rate_(kBurst, kPerSecond, clock),
      calls_({kCalls, kCalls, kCalls * kBytesOfOne}),
      forwarded_(
          metrics.AddCounter("muster_relay_joins_total", "Forwarded requests to join or rejoin.")),
      refused_(metrics.AddCounter(
          "muster_relay_joins_refused_total",
          "Rejected requests to join or rejoin: too many at a time, or too large.")) {}

absl::StatusOr<UpstreamCall> JoinForward::Admit(grpc::CallbackServerContext* context,
                                                int64_t bytes) {
  if (bytes > kBytesOfOne || !rate_.TryTake()) return errors::Overloaded();
  ASSIGN_OR_RETURN(auto ticket, calls_.Enter("", bytes));
  UpstreamCall call;
  call.channel = upstream_.Joining();
  if (call.channel == nullptr) return errors::RelayCutOff();
  call.ticket = std::move(ticket);
  call.context = grpc::ClientContext::FromCallbackServerContext(*context);
  return call;
}

template <typename Request>
grpc::ServerUnaryReactor* JoinForward::Forward(grpc::CallbackServerContext* context,
                                               std::string_view method, const Request* request,
                                               v1::NodeCertificate* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  // On the listener with mutual TLS only relays may call.
  std::shared_ptr<Call> call;
  if (context->auth_context()->IsPeerAuthenticated()) {
    call = std::make_shared<Call>(runtime_, context, method);
    const absl::Status allowed = call->Authorize(Resource::Fleet());
    if (!allowed.ok()) {
      reactor->Finish(call->Final(allowed));
      return reactor;
    }
  }
  auto up = Admit(context, static_cast<int64_t>(request->ByteSizeLong()));
  if (!up.ok()) {
    refused_.Add();
    reactor->Finish(call != nullptr ? call->Final(up.status()) : ToGrpc(up.status()));
    return reactor;
  }
  forwarded_.Add();
  CallUpstream(*std::move(up), method, request, response,
               [reactor, call](const absl::Status& status) {
                 reactor->Finish(call != nullptr ? call->Final(status) : ToGrpc(status));
               });
  return reactor;
}

grpc::ServerUnaryReactor* JoinForward::Join(grpc::CallbackServerContext* context,
                                            const v1::JoinRequest* request,
                                            v1::NodeCertificate* response) {
  return Forward(context, "/muster.v1.JoinService/Join", request, response);
}

grpc::ServerUnaryReactor* JoinForward::Rejoin(grpc::CallbackServerContext* context,
                                              const v1::RejoinRequest* request,
                                              v1::NodeCertificate* response) {
  return Forward(context, "/muster.v1.JoinService/Rejoin", request, response);
}

}  // namespace muster
