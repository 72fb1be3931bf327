// Unary calls that use no thread while they wait.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALL_LATER_H_
#define MUSTER_SERVICES_COMMON_RPC_CALL_LATER_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "services/common/rpc/status.h"

namespace muster {

// Clang takes Stub::async for the function of that name.
template <typename Service>
using AsyncStub = std::remove_pointer_t<decltype(std::declval<typename Service::Stub&>().async())>;

template <typename Service, typename Request, typename Response>
using LaterMethod = void (AsyncStub<Service>::*)(grpc::ClientContext*, const Request*, Response*,
                                                 std::function<void(grpc::Status)>);

// Calls `method` of a service, and `done` once on a thread of gRPC.
template <typename Service, typename Request, typename Response>
void CallLater(const std::shared_ptr<grpc::Channel>& channel,
               LaterMethod<Service, Request, Response> method, Request request,
               std::chrono::seconds within, std::function<void(absl::Status, Response)> done) {
  struct CallState {
    std::unique_ptr<typename Service::Stub> stub;
    grpc::ClientContext context;
    Request request;
    Response response;
  };
  auto state = std::make_shared<CallState>();
  state->stub = Service::NewStub(channel);
  state->context.set_deadline(std::chrono::system_clock::now() + within);
  state->request = std::move(request);
  (state->stub->async()->*method)(&state->context, &state->request, &state->response,
                                  [state, done = std::move(done)](const grpc::Status& status) {
                                    done(FromGrpc(status), std::move(state->response));
                                  });
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALL_LATER_H_
