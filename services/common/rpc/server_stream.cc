#include "services/common/rpc/server_stream.h"

#include <memory>

#include "services/common/base/timers.h"

namespace muster {
namespace {

// A peer that takes its status does so within a round trip.
constexpr absl::Duration kLastStatusWithin = absl::Seconds(1);

}  // namespace

ServerStreamBase::ServerStreamBase(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                   std::string_view method, const ServerStreamOptions& options)
    : ServerStreamCore(options, runtime.stream_timers),
      executor_(*runtime.executor),
      timers_(runtime.stream_timers),
      streams_(options.counted ? runtime.streams : nullptr),
      context_(context),
      limits_(options.limits),
      call_(runtime, context, method) {}

void ServerStreamBase::EndSoon(const absl::Status& why) {
  Cancel(why);
  const std::weak_ptr<ServerStreamBase> weak =
      std::static_pointer_cast<ServerStreamBase>(shared_from_this());
  const auto abort = [weak] {
    if (const auto stream = weak.lock()) stream->Abort();
  };
  if (timers_ == nullptr || !timers_->Schedule(kLastStatusWithin, abort).ok()) Abort();
}

void ServerStreamBase::Register() {
  call_.SetStream(std::static_pointer_cast<ServerStreamBase>(shared_from_this()));
}

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
