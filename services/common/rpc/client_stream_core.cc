#include "services/common/rpc/client_stream_core.h"

#include <utility>

#include "services/common/errors/rpc.h"

namespace muster {

void ClientStreamCore::HalfClose() {
  Todo todo;
  {
    MutexLock lock(mutex_);
    half_close_ = sends_closed_ = true;
    todo = Advance();
  }
  Do(std::move(todo));
}

void ClientStreamCore::Cancel(const absl::Status& why) {
  Todo todo;
  {
    MutexLock lock(mutex_);
    if (why_ || done_) return;
    // If the server has ended the call, its status is kept. If the last read was of bytes that are
    // no message, the server has not.
    cancelled_late_ = reads_closed_;
    Fail(why);
    todo = Advance();
  }
  Do(std::move(todo));
}

void ClientStreamCore::HandleEndLate() { Cancel(errors::UnreadableAnswer()); }

void ClientStreamCore::HandleDone(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    // An error of the server says more than this side's reason to cancel.
    const bool reported = !status.ok() && !absl::IsCancelled(status);
    const bool ended_before = cancelled_late_ && status.ok();
    const bool ours = why_ && !reported && !ended_before;
    end_ = ours ? *why_ : status;
    by_ = ours ? EndedBy::kThisSide : EndedBy::kPeer;
    Close();
  }
  StreamCore::HandleDone();
}

void ClientStreamCore::Close() {
  DropQueue();
  ended_ = sends_closed_ = writes_closed_ = true;
  writable_due_ = false;
}

void ClientStreamCore::ReadsEnded() {
  Close();
  if (!why_) AwaitEnd();
}

void ClientStreamCore::Fail(const absl::Status& why) {
  why_ = why;
  Close();
  DropCallbacks();
  CancelCall();
}

bool ClientStreamCore::Settle() {
  if (half_close_ && !half_closing_ && !writes_closed_ && queue_.empty()) {
    half_closing_ = true;
    StartHalfClosing();
  }
  return ended_;
}

}  // namespace muster
