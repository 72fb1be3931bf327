#include "services/common/rpc/call.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/errors/rpc.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/caller_uri.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/rpc_metrics.h"
#include "services/common/rpc/status.h"

namespace muster {

Call::Call(const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method)
    : runtime_(runtime), method_(method), began_(SystemClock().MonotonicNow()) {
  auto caller = runtime_.callers->Resolve(*context->auth_context(), context->client_metadata());
  caller_status_ = caller.status();
  if (!caller.ok()) return;
  caller_ = *std::move(caller);
  call_entry_ = runtime_.canceller->Add(caller_, context);
}

Call::~Call() = default;

absl::Status Call::Authorize(const Resource& resource) {
  if (!caller_status_.ok()) return caller_status_;
  asked_ = true;
  return muster::Authorize(*caller_, method_, resource);
}

absl::Status Call::CountRequest(RequestSize request) {
  if (!caller_status_.ok() || runtime_.request_memory == nullptr) return caller_status_;
  if (request.bytes < kCountedRequestBytes) return absl::OkStatus();
  ASSIGN_OR_RETURN(memory_, runtime_.request_memory->Reserve(HolderOf(*caller_), request.bytes));
  return absl::OkStatus();
}

grpc::Status Call::Final(const absl::Status& status) {
  const grpc::Status final = FinalOfStream(status);
  Leave();
  return final;
}

grpc::Status Call::FinalOfStream(const absl::Status& status) {
  absl::Status answer = status;
  if (answer.ok() && !asked_) {
    answer = errors::NotAuthorizedByHandler(method_);
  }
  runtime_.metrics->Count(method_, answer.code(), SystemClock().MonotonicNow() - began_);
  return ToGrpc(answer);
}

void Call::ContextGone() {
  if (call_entry_ != nullptr) runtime_.canceller->ForgetContext(*call_entry_);
}

grpc::ServerUnaryReactor* AnswerHere(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method,
    RequestSize request, absl::AnyInvocable<void(std::shared_ptr<Call>, Finish)> handler) {
  auto call = std::make_shared<Call>(runtime, context, method);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  if (const absl::Status status = call->CountRequest(request); !status.ok()) {
    reactor->Finish(call->Final(status));
    return reactor;
  }
  handler(call,
          [reactor, call](const absl::Status& status) { reactor->Finish(call->Final(status)); });
  return reactor;
}

grpc::ServerUnaryReactor* AnswerLater(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, std::string_view method,
    RequestSize request, absl::AnyInvocable<void(std::shared_ptr<Call>, Finish)> handler) {
  return AnswerHere(runtime, context, method, request,
                    [executor = runtime.executor, handler = std::move(handler)](
                        const std::shared_ptr<Call>& call, Finish finish) mutable {
                      // Shared, since a queue that is full drops what it was given.
                      auto done = std::make_shared<Finish>(std::move(finish));
                      if (executor->Post([call, done, handler = std::move(handler)]() mutable {
                            handler(call, std::move(*done));
                          })) {
                        return;
                      }
                      (*done)(errors::Overloaded());
                    });
}

grpc::ServerUnaryReactor* Answer(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                 std::string_view method, RequestSize request,
                                 absl::AnyInvocable<absl::Status(Call&)> handler) {
  return AnswerLater(
      runtime, context, method, request,
      [handler = std::move(handler)](const std::shared_ptr<Call>& call, Finish finish) mutable {
        finish(handler(*call));
      });
}

}  // namespace muster
