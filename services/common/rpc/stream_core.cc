#include "services/common/rpc/stream_core.h"

#include <utility>

#include "services/common/errors/runs.h"

namespace muster {

StreamCore::StreamCore(const StreamOptions& options, TimerService* timers)
    : queue_(options.max_queued, options.max_queued_bytes), options_(options), timers_(timers) {}

void StreamCore::ReadNext() {
  Todo todo;
  {
    MutexLock lock(mutex_);
    want_read_ = true;
    todo = Advance();
  }
  Do(std::move(todo));
}

void StreamCore::NotifyWhenWritable() {
  Todo todo;
  {
    MutexLock lock(mutex_);
    notify_ = true;
    NoteRoom();
    todo = Advance();
  }
  Do(std::move(todo));
}

bool StreamCore::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

void StreamCore::AwaitFirstMessage() {
  if (timers_ == nullptr || options_.first_within <= absl::ZeroDuration()) return;
  const auto timer = timers_->Schedule(options_.first_within, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->FirstLate();
  });
  Todo todo;
  {
    MutexLock lock(mutex_);
    if (timer.ok()) {
      timer_ = *timer;
    } else if (!ended_) {
      Fail(timer.status());
    }
    todo = Advance();
  }
  Do(std::move(todo));
}

void StreamCore::FirstLate() {
  Todo todo;
  {
    MutexLock lock(mutex_);
    timer_ = 0;
    if (!first_came_ && !ended_) Fail(options_.first_late(options_.first_within));
    todo = Advance();
  }
  Do(std::move(todo));
}

Sent StreamCore::Enqueue(std::unique_ptr<OutMessage> message, bool last) {
  Todo todo;
  {
    MutexLock lock(mutex_);
    if (sends_closed_) return Sent::kEnded;
    if (!last && !queue_.Fits(message->bytes)) {
      notify_ = true;
      return Sent::kFull;
    }
    queue_.Push(std::move(message));
    if (last) {
      sends_closed_ = true;
      LastQueued();
    }
    todo = Advance();
  }
  Do(std::move(todo));
  return Sent::kQueued;
}

std::unique_ptr<OutMessage> StreamCore::TakeSentMessage() {
  MutexLock lock(mutex_);
  return std::move(sent_);
}

void StreamCore::HandleRead(bool ok) {
  Todo todo;
  {
    MutexLock lock(mutex_);
    reading_ = false;
    if (!ok) {
      reads_closed_ = true;
      ReadsEnded();
    } else {
      first_came_ = true;
      if (!ended_) slot_full_ = message_due_ = true;
    }
    todo = Advance();
  }
  Do(std::move(todo));
}

void StreamCore::HandleWritten(bool ok) {
  Todo todo;
  std::unique_ptr<OutMessage> written;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    written = queue_.Pop();
    if (options_.keep_sent) std::swap(written, sent_);
    if (!ok) {
      DropQueue();
      sends_closed_ = writes_closed_ = true;
      WriteFailed();
    } else if (options_.notify_when_sent && queue_.empty()) {
      notify_ = true;
    }
    NoteRoom();
    todo = Advance();
  }
  Do(std::move(todo));
}

void StreamCore::HandleDone() {
  Todo todo;
  {
    MutexLock lock(mutex_);
    done_ = true;
    todo = Advance();
  }
  Do(std::move(todo));
}

void StreamCore::SlotFree() {
  Todo todo;
  {
    MutexLock lock(mutex_);
    slot_full_ = false;
    todo = Advance();
  }
  Do(std::move(todo));
}

void StreamCore::NoteRoom() {
  if (!notify_ || sends_closed_ || !queue_.AtMostHalfFull()) return;
  notify_ = false;
  writable_due_ = true;
}

StreamCore::Todo StreamCore::Advance() {
  Todo todo;
  todo.dropped = std::move(dropped_);
  if (first_came_ || ended_) todo.timer = std::exchange(timer_, 0);
  if (want_read_ && !reading_ && !slot_full_ && !reads_closed_ && !ended_) {
    want_read_ = false;
    reading_ = true;
    StartReading();
  }
  if (!writing_ && !writes_closed_ && !queue_.empty() && !HoldsLast()) {
    writing_ = true;
    const bool last = half_close_ && queue_.count() == 1;
    if (last) half_closing_ = true;
    StartWriting(queue_.front(), last);
  }
  if (!running_ && CallbacksDue()) running_ = todo.run = true;
  if (!closed_ && Settle()) closed_ = todo.close = true;
  return todo;
}

// CloseCall may end the call immediately, and this object with it, unless this thread runs the
// callbacks.
void StreamCore::Do(Todo todo) {
  OutQueue::Destroy(std::move(todo.dropped));
  if (todo.timer != 0) timers_->Cancel(todo.timer);
  if (todo.close) CloseCall();
  if (todo.run) Run();
}

void StreamCore::DropQueue() {
  if (queue_.empty()) return;
  OutQueue::Destroy(std::move(dropped_));
  dropped_ = writing_ ? queue_.TakeAllButFirst() : queue_.TakeAll();
}

void StreamCore::DropCallbacks() {
  message_due_ = half_closed_due_ = writable_due_ = notify_ = false;
}

void StreamCore::Run() {
  if (!options_.on_executor) {
    while (RunOnce()) {
    }
    return;
  }
  const bool posted = Post([self = shared_from_this()] {
    if (self->RunOnce()) self->Run();
  });
  if (!posted && Refused()) RunOnce();
}

// The executor refused callbacks. Returns whether one has to run all the same: the last.
bool StreamCore::Refused() {
  Todo todo;
  {
    MutexLock lock(mutex_);
    DropCallbacks();
    if (done_) return true;
    running_ = false;
    if (!ended_) Fail(errors::Overloaded());
    todo = Advance();
  }
  Do(std::move(todo));
  return false;
}

void StreamCore::CallEnd() {
  absl::Status status;
  EndedBy by = EndedBy::kPeer;
  {
    MutexLock lock(mutex_);
    status = end_;
    by = by_;
  }
  CallEnded(status, by);
}

StreamCore::Due StreamCore::TakeDue() {
  if (std::exchange(message_due_, false)) return Due::kMessage;
  if (std::exchange(half_closed_due_, false)) return Due::kHalfClosed;
  if (std::exchange(writable_due_, false)) {
    // A message may have been queued since the room was noted.
    if (queue_.AtMostHalfFull()) return Due::kWritable;
    notify_ = true;
  }
  return done_ ? Due::kEnd : Due::kNothing;
}

// Runs the callback that is due; returns whether another one is. After CallEnd this object may be
// gone; running_ stays set, so nothing else is ever called.
bool StreamCore::RunOnce() {
  Due due = Due::kNothing;
  {
    MutexLock lock(mutex_);
    due = TakeDue();
  }
  switch (due) {
    case Due::kNothing:
      break;
    case Due::kMessage:
      CallMessage();
      break;
    case Due::kHalfClosed:
      CallHalfClosed();
      break;
    case Due::kWritable:
      CallWritable();
      break;
    case Due::kEnd:
      CallEnd();
      return false;
  }
  Todo todo;
  {
    MutexLock lock(mutex_);
    running_ = false;
    todo = Advance();
  }
  const bool more = std::exchange(todo.run, false);
  Do(std::move(todo));
  return more;
}

}  // namespace muster
