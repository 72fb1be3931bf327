#include "services/common/rpc/server_stream_core.h"

#include <utility>

namespace muster {

void ServerStreamCore::End(const absl::Status& status, Waiting waiting) {
  Todo todo;
  {
    MutexLock lock(mutex_);
    if (ended_) return;
    if (waiting == Waiting::kDrop) DropQueue();
    SetEnd(status, EndedBy::kThisSide);
    todo = Advance();
  }
  Do(std::move(todo));
}

void ServerStreamCore::Cancel(const absl::Status& status) {
  Todo todo;
  {
    MutexLock lock(mutex_);
    if (done_) return;
    const bool cut = !queue_.empty();
    DropQueue();
    // A status that was to follow the dropped messages does not count.
    if (!ended_ || (cut && by_ == EndedBy::kThisSide)) SetEnd(status, EndedBy::kThisSide);
    if (writing_) CancelCall();
    todo = Advance();
  }
  Do(std::move(todo));
}

void ServerStreamCore::Abort() {
  MutexLock lock(mutex_);
  if (!done_) CancelCall();
}

void ServerStreamCore::HandleCancel() {
  Todo todo;
  {
    MutexLock lock(mutex_);
    DropQueue();
    if (!ended_) SetEnd(absl::CancelledError("the call was cancelled"), EndedBy::kPeer);
    todo = Advance();
  }
  Do(std::move(todo));
}

void ServerStreamCore::SetEnd(const absl::Status& status, EndedBy by) {
  ended_ = sends_closed_ = true;
  end_ = status;
  by_ = by;
  writable_due_ = false;
  if (by == EndedBy::kThisSide) DropCallbacks();
}

void ServerStreamCore::Fail(const absl::Status& why) {
  DropQueue();
  SetEnd(why, EndedBy::kThisSide);
}

void ServerStreamCore::ReadsEnded() { half_closed_due_ = !ended_; }

void ServerStreamCore::WriteFailed() {
  if (!ended_) SetEnd(absl::CancelledError("the peer went away"), EndedBy::kPeer);
}

void ServerStreamCore::LastQueued() {
  last_queued_ = true;
  SetEnd(absl::OkStatus(), EndedBy::kThisSide);
}

bool ServerStreamCore::HoldsLast() const { return last_queued_ && queue_.count() == 1; }

bool ServerStreamCore::Settle() {
  if (!ended_ || writing_ || running_ || CallbacksDue()) return false;
  // Nothing else is queued: it would be being written.
  if (HoldsLast()) last_ = queue_.Pop();
  return true;
}

void ServerStreamCore::CloseCall() {
  absl::Status status;
  std::unique_ptr<OutMessage> last;
  {
    MutexLock lock(mutex_);
    status = end_;
    last = std::move(last_);
  }
  FinishCall(status, std::move(last));
}

}  // namespace muster
