#include "services/status/board/watch_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

constexpr int kPairsOfMessage = 2000;
// The summary is repeated at least this often: its times change, and the stream stays alive.
constexpr absl::Duration kRepeatAfter = absl::Milliseconds(4500);
constexpr size_t kMaxCursor = 64;
// Each may hold one message that its reader does not receive.
constexpr int64_t kMaxWatchers = 10'000;

}  // namespace

absl::StatusOr<std::unique_ptr<WatchSource>> WatchSource::Make(
    Board& board, WatchHub& hub, const Clock& clock, const v1::WatchStatusRequest& request,
    std::string_view caller, std::function<void()> wake) {
  std::unique_ptr<WatchSource> source(new WatchSource(board, hub, clock, request, std::move(wake)));
  board.FindWithPairs(request.run(), caller,
                      [pending = source->pending_,
                       wake = source->wake_](absl::StatusOr<std::shared_ptr<RunBoard>> run) {
                        bool waiting = false;
                        {
                          MutexLock lock(pending->mutex);
                          pending->run = std::move(run);
                          waiting = pending->waiting;
                        }
                        if (waiting) wake();
                      });
  RETURN_IF_ERROR(source->TryBegin());
  return source;
}

absl::Status WatchSource::TryBegin() {
  {
    MutexLock lock(pending_->mutex);
    pending_->waiting = !pending_->run;
    if (pending_->waiting) return absl::OkStatus();
    RETURN_IF_ERROR(pending_->run->status());
    run_ = **pending_->run;
  }
  if (hub_.watchers() >= kMaxWatchers) return errors::Overloaded();
  RETURN_IF_ERROR(Begin());
  watch_ = hub_.Watch(request_.run(), wake_);
  return absl::OkStatus();
}

absl::Status WatchSource::Begin() {
  const std::string& cursor = request_.cursor();
  rounds_.fill(-absl::InfiniteDuration());
  in_snapshot_ = true;
  if (cursor.empty()) return absl::OkStatus();
  const size_t dot = cursor.find('.');
  uint64_t version = 0;
  if (cursor.size() > kMaxCursor || dot != run_->epoch().size() ||
      cursor.find_first_not_of("0123456789abcdef") < dot ||
      cursor.find_first_not_of("0123456789", dot + 1) != std::string::npos ||
      !absl::SimpleAtoi(cursor.substr(dot + 1), &version)) {
    return errors::InvalidCursor();
  }
  // The cursor is from before a restart, or of another run: the watcher needs a snapshot.
  if (cursor.substr(0, dot) != run_->epoch()) return absl::OkStatus();
  if (version > run_->Newest().version) return errors::InvalidCursor();
  sent_.version = version;
  in_snapshot_ = false;
  return absl::OkStatus();
}

absl::StatusOr<Pull> WatchSource::Next(std::string* bytes) {
  if (run_ == nullptr) {
    RETURN_IF_ERROR(TryBegin());
    if (run_ == nullptr) return Pull::kWait;
  }
  if (run_->deleted()) {
    // The feed may have replaced the run: the watcher connects again.
    const absl::Status found = board_.Find(run_->id()).status();
    return ReasonOf(found) == "RUN_NOT_FOUND" ? found : errors::StatusNotReady();
  }
  if (!in_round_) {
    const Pull pull = BeginRound();
    if (pull != Pull::kMessage) return pull;
  }
  bytes->clear();
  Fill(bytes);
  return Pull::kMessage;
}

Pull WatchSource::BeginRound() {
  // Asked for before the versions: what ends the run comes last.
  const bool ended = run_->ended();
  round_ = run_->Newest();
  const absl::Duration now = clock_.MonotonicNow();
  const bool pairs = with_pairs_ && round_.version != sent_.version;
  summary_due_ = round_.summary != sent_.summary || now - summary_at_ >= kRepeatAfter;
  if (sent_any_ && !pairs && round_.summary == sent_.summary && ended) return Pull::kEnd;
  if (sent_any_ && !pairs && !summary_due_) return Pull::kWait;
  if (now - rounds_[next_round_] < absl::Seconds(1)) {
    hub_.Changed(run_->id());
    return Pull::kWait;
  }
  rounds_[next_round_] = now;
  next_round_ = (next_round_ + 1) % rounds_.size();
  in_round_ = true;
  return Pull::kMessage;
}

void WatchSource::Fill(std::string* bytes) {
  v1::WatchStatusResponse message;
  if (in_snapshot_ && sent_.version == 0) message.set_reset(true);
  if (std::exchange(summary_due_, false)) {
    board_.AddSummary(*run_, message.mutable_status());
    sent_.summary = round_.summary;
    summary_at_ = clock_.MonotonicNow();
  }
  // A watcher without pairs has received none, and its cursor shows that.
  if (with_pairs_) {
    PairWriter pairs(v1::WatchStatusResponse::kPairsFieldNumber, bytes);
    sent_.version = run_->AddChanges(sent_.version, round_.version, kPairsOfMessage, &pairs);
  }
  sent_any_ = true;
  in_round_ = with_pairs_ && sent_.version != round_.version;
  in_snapshot_ = in_snapshot_ && in_round_;
  if (!in_snapshot_) message.set_cursor(Cursor(sent_.version));
  message.AppendToString(bytes);
}

std::string WatchSource::Cursor(uint64_t version) const {
  return absl::StrCat(run_->epoch(), ".", version);
}

}  // namespace muster
