// Blocking unary calls of a node that end when their job is stopped.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_STOPPABLE_CALL_H_
#define MUSTER_SERVICES_AGENT_ATTACH_STOPPABLE_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/call_later.h"
#include "services/common/rpc/status.h"

namespace muster {

// How often a waiting thread of a job checks whether the job is stopped.
inline constexpr absl::Duration kStopPoll = absl::Milliseconds(100);

// Calls `method` of a service, and waits for the answer. Cancels the call once `stopped` returns
// true: it then fails, unless the answer has arrived.
template <typename Service, typename Request, typename Response>
absl::StatusOr<Response> CallUntilStopped(const std::shared_ptr<grpc::Channel>& channel,
                                          LaterMethod<Service, Request, Response> method,
                                          const Request& request, std::chrono::seconds within,
                                          absl::FunctionRef<bool()> stopped) {
  struct CallState {
    std::unique_ptr<typename Service::Stub> stub;
    grpc::ClientContext context;
    Response response;
    Mutex mutex;
    CondVar ended;
    std::optional<absl::Status> status ABSL_GUARDED_BY(mutex);
  };
  // gRPC may still use it when the status has arrived.
  const auto call = std::make_shared<CallState>();
  call->stub = Service::NewStub(channel);
  call->context.set_deadline(std::chrono::system_clock::now() + within);
  (call->stub->async()->*method)(&call->context, &request, &call->response,
                                 [call](const grpc::Status& status) {
                                   {
                                     MutexLock lock(call->mutex);
                                     call->status = FromGrpc(status);
                                   }
                                   call->ended.NotifyAll();
                                 });
  MutexLock lock(call->mutex);
  const auto has_ended = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(call->mutex) {
    return call->status.has_value();
  };
  while (!call->ended.WaitFor(call->mutex, kStopPoll, has_ended)) {
    if (stopped()) call->context.TryCancel();
  }
  if (!call->status->ok()) return *call->status;
  return std::move(call->response);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_STOPPABLE_CALL_H_
