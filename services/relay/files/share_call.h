// Unary calls that use no thread while they wait.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_CALL_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_CALL_H_

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
  struct Asked {
    std::unique_ptr<typename Service::Stub> stub;
    grpc::ClientContext context;
    Request request;
    Response response;
  };
  auto asked = std::make_shared<Asked>();
  asked->stub = Service::NewStub(channel);
  asked->context.set_deadline(std::chrono::system_clock::now() + within);
  asked->request = std::move(request);
  (asked->stub->async()->*method)(&asked->context, &asked->request, &asked->response,
                                  [asked, done = std::move(done)](const grpc::Status& status) {
                                    done(FromGrpc(status), std::move(asked->response));
                                  });
}

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_CALL_H_
