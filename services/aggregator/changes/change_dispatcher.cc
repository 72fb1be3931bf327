#include "services/aggregator/changes/change_dispatcher.h"

#include <utility>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace muster {
namespace {

constexpr int kBatch = 1000;

// The shortest time between two batches for followers.
constexpr absl::Duration kPace = absl::Milliseconds(20);

}  // namespace

ChangeDispatcher::ChangeDispatcher(ChangeFeed& feed, Executor& executor, TimerService* timers)
    : feed_(feed), executor_(executor), timers_(timers) {}

ChangeDispatcher::~ChangeDispatcher() { Stop(); }

void ChangeDispatcher::AddObserver(Observer observer) { observers_.push_back(std::move(observer)); }

absl::Status ChangeDispatcher::Start() {
  ASSIGN_OR_RETURN(const auto last, feed_.Last());
  {
    MutexLock lock(read_mutex_);
    cursor_ = last;
  }
  subscription_ = feed_.Subscribe([this](int64_t) { Poke(); });
  Poke();
  return absl::OkStatus();
}

void ChangeDispatcher::Stop() {
  subscription_.reset();
  {
    MutexLock lock(mutex_);
    stopped_ = true;
  }
  MutexLock lock(read_mutex_);
}

void ChangeDispatcher::Poke() {
  absl::Duration wait;
  {
    MutexLock lock(mutex_);
    if (stopped_ || pending_) return;
    pending_ = true;
    if (timers_ != nullptr) wait = read_at_ + kPace - SystemClock().MonotonicNow();
  }
  if (wait > absl::ZeroDuration() && timers_->Schedule(wait, [this] { PostRead(); }).ok()) return;
  PostRead();
}

void ChangeDispatcher::PostRead() {
  if (executor_.Post([this] { Read(); })) return;
  MutexLock lock(mutex_);
  pending_ = false;
  failed_ = true;
}

void ChangeDispatcher::RetryFailedRead() {
  {
    MutexLock lock(mutex_);
    if (!failed_) return;
  }
  Poke();
}

void ChangeDispatcher::Read() {
  MutexLock reading(read_mutex_);
  {
    MutexLock lock(mutex_);
    pending_ = false;
    if (stopped_) return;
    read_at_ = SystemClock().MonotonicNow();
  }
  const absl::Status read = ReadToEnd();
  if (!read.ok()) Log(LogLevel::kError, "cannot read the change feed", {{"error", read}});
  {
    MutexLock lock(mutex_);
    failed_ = !read.ok();
  }
  WakeAll();
}

absl::Status ChangeDispatcher::ReadToEnd() {
  for (;;) {
    const auto changes = feed_.Read(cursor_, kBatch);
    if (ReasonOf(changes.status()) == "CURSOR_COMPACTED") {
      RETURN_IF_ERROR(SkipGap());
      continue;
    }
    RETURN_IF_ERROR(changes.status());
    for (const ChangeRecord& change : *changes) {
      for (const Observer& observer : observers_) observer(change);
      cursor_ = change.sequence;
    }
    if (changes->size() < kBatch) return absl::OkStatus();
  }
}

absl::Status ChangeDispatcher::SkipGap() {
  // Changes during the call of on_gap_ are read after it.
  ASSIGN_OR_RETURN(const int64_t last, feed_.Last());
  Log(LogLevel::kWarning, "the change feed dropped changes that were not read yet",
      {{"from", cursor_}, {"to", last}});
  RETURN_IF_ERROR(on_gap_());
  cursor_ = last;
  return absl::OkStatus();
}

ChangeDispatcher::Handle ChangeDispatcher::Watch(Waker waker) {
  MutexLock lock(mutex_);
  const uint64_t id = next_id_++;
  watchers_.emplace(id, std::move(waker));
  return {nullptr, [this, id](void*) {
            MutexLock guard(mutex_);
            watchers_.erase(id);
          }};
}

void ChangeDispatcher::WakeAll() {
  std::vector<Waker> wakers;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, waker] : watchers_) wakers.push_back(waker);
  }
  for (const Waker& waker : wakers) waker();
}

}  // namespace muster
