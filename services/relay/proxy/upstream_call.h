// One call from below, made again upward in the caller's name.
#ifndef MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_CALL_H_
#define MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/call.h"
#include "services/relay/proxy/admission.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// What all forwarded calls share. The references outlive every call.
struct ForwardParts {
  Upstream& upstream;
  RpcRuntime runtime;
  Admission& calls;
};

// Which of the channels upward a service takes.
using ChannelOf = std::shared_ptr<grpc::Channel> (Upstream::*)();

// The context of a call upward: deadline and cancellation are those of the call from below. Kept
// until the call upward is over.
struct UpstreamCall {
  std::unique_ptr<grpc::ClientContext> context;
  std::shared_ptr<grpc::Channel> channel;
  Admission::Ticket ticket;
};

// Prepares it: a node's call carries the node's name and statement, a child relay's own call is
// made as this relay. NOT_ATTACHED, RELAY_CUT_OFF, OVERLOADED. `bytes`: of the message, for
// `admission`.
absl::StatusOr<std::shared_ptr<UpstreamCall>> BeginUpstreamCall(
    Upstream& upstream, ChannelOf channel_of, Admission& admission, const Call& call,
    grpc::CallbackServerContext* below, int64_t bytes);

// What came from above, for below: as it is, but that nobody was there is RELAY_CUT_OFF.
absl::Status FromUpstream(const grpc::Status& status);

// A unary call upward that somebody waits for takes at most this.
void BoundUnary(grpc::ClientContext& context);

// Makes a unary call again upward; `done` is called once, on gRPC's threads. `request` and
// `response` stay until then.
template <typename Request, typename Response>
void CallUpstream(std::shared_ptr<UpstreamCall> up, std::string_view method, const Request* request,
                  Response* response, std::function<void(const absl::Status&)> done) {
  BoundUnary(*up->context);
  grpc::TemplatedGenericStub<Request, Response> stub(up->channel);
  grpc::ClientContext* context = up->context.get();
  stub.UnaryCall(context, std::string(method), {}, request, response,
                 [up = std::move(up), done = std::move(done)](const grpc::Status& status) {
                   done(FromUpstream(status));
                 });
}

// Answers a unary call with what the same call upward gives, after the caller was allowed to touch
// `resource`.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* ForwardUnary(const ForwardParts& parts, ChannelOf channel_of,
                                       grpc::CallbackServerContext* context,
                                       std::string_view method, Resource resource,
                                       const Request* request, Response* response) {
  return AnswerHere(parts.runtime, context, method,
                    [&parts, channel_of, context, method, resource = std::move(resource), request,
                     response](const std::shared_ptr<Call>& call, Finish finish) {
                      const absl::Status allowed = call->Authorize(resource);
                      if (!allowed.ok()) return finish(allowed);
                      auto up =
                          BeginUpstreamCall(parts.upstream, channel_of, parts.calls, *call, context,
                                            static_cast<int64_t>(request->ByteSizeLong()));
                      if (!up.ok()) return finish(up.status());
                      auto done = std::make_shared<Finish>(std::move(finish));
                      CallUpstream(*std::move(up), method, request, response,
                                   [done](const absl::Status& status) { (*done)(status); });
                    });
}

// The answer to what relays do not serve.
grpc::ServerUnaryReactor* RefuseUnary(const RpcRuntime& runtime,
                                      grpc::CallbackServerContext* context,
                                      std::string_view method);

// The same of a server's stream.
template <typename Message>
class RefusedStream : public grpc::ServerWriteReactor<Message> {
 public:
  static RefusedStream* Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                              std::string_view method) {
    auto* reactor = new RefusedStream;
    Call call(runtime, context, method);
    reactor->Finish(call.Final(call.caller_status().ok() ? errors::RelayDoesNotServe(method)
                                                         : call.caller_status()));
    return reactor;
  }
  void OnDone() override { delete this; }
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_CALL_H_
