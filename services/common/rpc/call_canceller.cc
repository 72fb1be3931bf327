#include "services/common/rpc/call_canceller.h"

#include <vector>

namespace muster {

Caller WithoutForwarder(Caller caller) {
  if (!caller.via) return caller;
  caller.via.reset();
  caller.issuer.clear();
  caller.serial.clear();
  return caller;
}

CallCanceller::Handle CallCanceller::Add(std::shared_ptr<const Caller> caller,
                                         grpc::CallbackServerContext* context) {
  const Handle entry(new Entry(std::move(caller)), [this](const Entry* ended) {
    {
      MutexLock lock(mutex_);
      contexts_.erase(ended);
      if (contexts_.empty()) none_.NotifyAll();
    }
    delete ended;
  });
  MutexLock lock(mutex_);
  contexts_.emplace(entry.get(), context);
  return entry;
}

void CallCanceller::SetStream(Entry& entry, std::weak_ptr<EndableStream> stream) {
  MutexLock lock(mutex_);
  entry.stream_ = std::move(stream);
}

void CallCanceller::ForgetContext(Entry& entry) {
  MutexLock lock(mutex_);
  contexts_[&entry] = nullptr;
}

int CallCanceller::CancelWhere(const std::function<bool(const Entry&)>& condition) {
  int cancelled = 0;
  MutexLock lock(mutex_);
  for (const auto& [entry, context] : contexts_) {
    if (context == nullptr || !condition(*entry)) continue;
    context->TryCancel();
    ++cancelled;
  }
  return cancelled;
}

int CallCanceller::CancelIf(const std::function<bool(const Caller&)>& is_revoked) {
  return CancelWhere([&](const Entry& entry) { return is_revoked(*entry.caller_); });
}

void CallCanceller::EndIf(const std::function<bool(const Caller&)>& is_revoked,
                          const absl::Status& why) {
  std::vector<std::shared_ptr<EndableStream>> streams;
  {
    MutexLock lock(mutex_);
    for (const auto& [entry, context] : contexts_) {
      if (context == nullptr || !is_revoked(*entry->caller_)) continue;
      auto stream = entry->stream_.lock();
      if (stream != nullptr && is_revoked(WithoutForwarder(*entry->caller_))) {
        streams.push_back(std::move(stream));
      } else {
        context->TryCancel();
      }
    }
  }
  // Without the lock: a stream may leave immediately.
  for (const auto& stream : streams) stream->EndSoon(why);
}

int CallCanceller::CancelStuck(absl::Duration now, absl::Duration limit) {
  return CancelWhere([&](const Entry& entry) {
    const int64_t since = entry.writing_since_;
    return since != 0 && now - absl::Nanoseconds(since) > limit;
  });
}

int CallCanceller::CancelAll() {
  return CancelWhere([](const Entry&) { return true; });
}

void CallCanceller::AwaitNone() {
  MutexLock lock(mutex_);
  while (!contexts_.empty()) none_.Wait(mutex_);
}

}  // namespace muster
