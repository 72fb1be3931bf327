#include "services/relay/proxy/join_forward.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/peer.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

// The rate of an address. A rack that is switched on joins within seconds.
constexpr double kJoinsPerSecond = 50;
constexpr double kJoinBurst = 200;
constexpr TokenBuckets::Rate kRate = {.per_second = kJoinsPerSecond, .burst = kJoinBurst};

constexpr int64_t kCalls = 256;
constexpr int64_t kCallsOfOne = 64;
constexpr int64_t kBytesOfOne = 64 * 1024;

// Returns the caller whose requests are limited: a relay by its URI, a machine without an identity
// by its address.
std::string JoinerOf(const grpc::CallbackServerContext& context) {
  const auto auth = context.auth_context();
  const std::string uri = auth == nullptr ? "" : PeerUri(*auth);
  return uri.empty() ? PeerAddress(context.peer()) : uri;
}

}  // namespace

JoinForward::JoinForward(Upstream& upstream, const RpcRuntime& runtime, const Clock& clock,
                         Metrics& metrics)
    : upstream_(upstream),
      runtime_(runtime),
      clock_(clock),
      calls_({.calls = kCalls,
              .calls_of_one = kCallsOfOne,
              .bytes = kCalls * kBytesOfOne,
              .bytes_of_one = kCallsOfOne * kBytesOfOne}),
      forwarded_(
          metrics.AddCounter("muster_relay_joins_total", "Forwarded requests to join or rejoin.")),
      refused_(metrics.AddCounter(
          "muster_relay_joins_refused_total",
          "Rejected requests to join or rejoin: too many at a time, or too large.")) {}

absl::StatusOr<UpstreamCall> JoinForward::Admit(grpc::CallbackServerContext* context,
                                                std::string_view method, int64_t bytes) {
  const std::string joiner = absl::StrCat(ToAbsl(method), " ", JoinerOf(*context));
  if (bytes > kBytesOfOne ||
      rates_.Take(joiner, kRate, clock_.MonotonicNow()) > absl::ZeroDuration()) {
    return errors::Overloaded();
  }
  ASSIGN_OR_RETURN(auto ticket, calls_.Enter(joiner, bytes));
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
  auto up = Admit(context, method, static_cast<int64_t>(request->ByteSizeLong()));
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
