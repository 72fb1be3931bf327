// Calls that this relay forwards upstream in the name of their callers.
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
#include "services/common/rpc/status.h"
#include "services/common/rpc/stream.h"
#include "services/relay/proxy/admission.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// Shared by all forwarded calls. The references outlive every call.
struct ForwardParts {
  Upstream& upstream;
  RpcRuntime runtime;
  Admission& calls;
};

// Selects the upstream channel of a service.
using ChannelOf = std::shared_ptr<grpc::Channel> (Upstream::*)();

// A prepared upstream call. Its deadline and cancellation are those of the downstream call. The
// ticket and the context exist until the upstream call has ended.
struct UpstreamCall {
  std::unique_ptr<grpc::ClientContext> context;
  std::shared_ptr<grpc::Channel> channel;
  Admission::Ticket ticket;
  absl::Status unreachable = errors::RelayCutOff();  // the error if the connection fails
};

// Prepares the upstream call: a call of a node carries the node's identity and statement; a child
// relay's own call is made with the identity of this relay. NOT_ATTACHED, RELAY_CUT_OFF,
// OVERLOADED. `bytes`: the size of the message, for `admission`.
absl::StatusOr<UpstreamCall> BeginUpstreamCall(Upstream& upstream, ChannelOf channel_of,
                                               Admission& admission, const Call& call,
                                               grpc::CallbackServerContext* downstream,
                                               int64_t bytes);

// Converts the status of an upstream call for the downstream caller: a failed connection becomes
// `unreachable`.
absl::Status FromUpstream(const absl::Status& status,
                          const absl::Status& unreachable = errors::RelayCutOff());

// Limits the duration of a unary upstream call.
void LimitUnary(grpc::ClientContext& context);

// Forwards a unary call; `done` is called once, on gRPC's threads. `request` and `response` outlive
// the call.
template <typename Request, typename Response>
void CallUpstream(UpstreamCall call, std::string_view method, const Request* request,
                  Response* response, std::function<void(const absl::Status&)> done) {
  LimitUnary(*call.context);
  grpc::TemplatedGenericStub<Request, Response> stub(call.channel);
  const auto kept = std::make_shared<UpstreamCall>(std::move(call));
  stub.UnaryCall(kept->context.get(), std::string(method), {}, request, response,
                 [kept, done = std::move(done)](const grpc::Status& status) {
                   done(FromUpstream(FromGrpc(status), kept->unreachable));
                 });
}

// Answers a unary call with the result of the same upstream call, if the caller may access
// `resource`. `unreachable` returns the error if the connection fails; null: RELAY_CUT_OFF.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* ForwardUnary(const ForwardParts& parts, ChannelOf channel_of,
                                       grpc::CallbackServerContext* context,
                                       std::string_view method, Resource resource,
                                       const Request* request, Response* response,
                                       absl::Status (Upstream::*unreachable)() const = nullptr) {
  return AnswerHere(parts.runtime, context, method, {*request, response},
                    [&parts, channel_of, context, method, resource = std::move(resource), request,
                     response, unreachable](const std::shared_ptr<Call>& call, Finish finish) {
                      const absl::Status allowed = call->Authorize(resource);
                      if (!allowed.ok()) return finish(allowed);
                      auto upstream_call =
                          BeginUpstreamCall(parts.upstream, channel_of, parts.calls, *call, context,
                                            static_cast<int64_t>(request->ByteSizeLong()));
                      if (!upstream_call.ok()) return finish(upstream_call.status());
                      if (unreachable != nullptr) {
                        upstream_call->unreachable = (parts.upstream.*unreachable)();
                      }
                      auto done = std::make_shared<Finish>(std::move(finish));
                      CallUpstream(*std::move(upstream_call), method, request, response,
                                   [done](const absl::Status& status) { (*done)(status); });
                    });
}

// The same for a method of the jobs service. `parts.calls` are not those of other services: calls
// that wait for the jobs service must not use up their limit.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* ForwardToJobs(const ForwardParts& parts,
                                        grpc::CallbackServerContext* context,
                                        std::string_view method, Resource resource,
                                        const Request* request, Response* response) {
  return ForwardUnary(parts, &Upstream::Jobs, context, method, std::move(resource), request,
                      response, &Upstream::JobsUnreachable);
}

// Rejects a call of a method that relays do not serve: RELAY_DOES_NOT_SERVE.
grpc::ServerUnaryReactor* RejectUnary(const RpcRuntime& runtime,
                                      grpc::CallbackServerContext* context,
                                      std::string_view method);

// The same for a server streaming method.
template <typename Message>
grpc::ServerWriteReactor<Message>* RejectStream(const RpcRuntime& runtime,
                                                grpc::CallbackServerContext* context,
                                                std::string_view method) {
  return StartSourceStream<Message>(runtime, context, method, StreamLimits(),
                                    [method](Call&, const std::function<void()>&)
                                        -> absl::StatusOr<std::unique_ptr<StreamSource<Message>>> {
                                      return errors::RelayDoesNotServe(method);
                                    });
}

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_CALL_H_
