#include "services/common/rpc/server_stream.h"

namespace muster {
ServerStreamBase::ServerStreamBase(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                   std::string_view method, const ServerStreamOptions& options)
    : ServerStreamCore(options, runtime.stream_timers),
      executor_(*runtime.executor),
      streams_(options.counted ? runtime.streams : nullptr),
      context_(context),
      limits_(options.limits),
      call_(runtime, context, method) {}

absl::Status ServerStreamBase::Admit() {
  if (streams_ == nullptr) return absl::OkStatus();
  const StreamLimits limits = LimitsOf(call_.caller().identity, limits_);
  auto ticket = streams_->Enter(call_.method(), limits.of_caller > 0 ? call_.holder() : "", limits);
  if (ticket.ok()) ticket_ = *std::move(ticket);
  return ticket.status();
}

// gRPC knows by now whether a read failed because the call did: that is no half close.
void ServerStreamBase::HandleReadDone(bool ok) {
  if (!ok && context_->IsCancelled()) HandleCancel();
  HandleRead(ok);
}

void ServerStreamBase::HandleWriteDone(bool ok) {
  call_.EndWrite();
  HandleWritten(ok);
}

void ServerStreamBase::HandleCallDone() {
  call_.ContextGone();
  HandleDone();
}

void ServerStreamBase::Leave() {
  ticket_ = OpenStreams::Ticket();
  call_.Leave();
}

void ServerStreamBase::CancelCall() { context_->TryCancel(); }

bool ServerStreamBase::Post(Executor::Task task) {
  return executor_.Post(call_.holder(), std::move(task));
}

}  // namespace muster
