#include "services/common/rpc/client_stream.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster {

void StreamRelease::Set() {
  MutexLock lock(mutex_);
  set_ = true;
  changed_.NotifyAll();
}

void StreamRelease::Wait() {
  MutexLock lock(mutex_);
  while (!set_) changed_.Wait(mutex_);
}

bool StreamRelease::WaitFor(absl::Duration limit) {
  MutexLock lock(mutex_);
  return changed_.WaitFor(mutex_, limit,
                          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return set_; });
}

ClientStreamBase::ClientStreamBase(const ClientStreamRuntime& runtime, const StreamOptions& options,
                                   std::unique_ptr<grpc::ClientContext> context)
    : ClientStreamCore(options, runtime.timers),
      executor_(runtime.executor),
      context_(std::move(context)) {
  MutexLock lock(alarmed_->mutex);
  alarmed_->stream = this;
}

ClientStreamBase::~ClientStreamBase() {
  MutexLock lock(alarmed_->mutex);
  alarmed_->stream = nullptr;
}

void ClientStreamBase::AwaitEnd() {
  end_.Set(absl::ToChronoTime(absl::Now() + options().end_within),
           [alarmed = alarmed_](bool expired) {
             if (!expired) return;
             MutexLock lock(alarmed->mutex);
             if (alarmed->stream != nullptr) alarmed->stream->HandleEndLate();
           });
}

void ClientStreamBase::CancelCall() { context_->TryCancel(); }

bool ClientStreamBase::Post(Executor::Task task) { return executor_->Post(std::move(task)); }

}  // namespace muster
