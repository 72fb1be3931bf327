#include "services/status/board/verdict_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

// Names hold no slash.
std::string SubjectOf(const v1::ResultKey& key) {
  return absl::StrCat(key.run(), "/", key.plugin(), "/", key.node());
}

std::string SubjectOf(const v1::Verdict& verdict) {
  return verdict.has_lost() ? SubjectOf(verdict.lost().key()) : verdict.start_grace_expired().run();
}

}  // namespace

absl::Duration LostAt(const PairFacts& facts, absl::Duration lost_after) {
  constexpr absl::Duration kNever = absl::InfiniteDuration();
  if (facts.outcome != v1::OUTCOME_PENDING || !facts.has_sender || facts.doubted) return kNever;
  // A sender that is late, or unknown after a start of this service, is not silent yet.
  const bool silent = facts.abandoned || facts.presence == v1::PRESENCE_SUSPECT ||
                      facts.presence == v1::PRESENCE_LOST || facts.presence == v1::PRESENCE_OFFLINE;
  return silent ? facts.silent_since() + lost_after : kNever;
}

std::string WhyLost(v1::Reason reason, const PairFacts& facts, const Moment& now) {
  return absl::StrCat(ToAbsl(ReasonName(reason)), ": ", Cause(reason, facts, now));
}

void VerdictLog::Add(const v1::Verdict& verdict) {
  {
    MutexLock lock(mutex_);
    const std::string subject = SubjectOf(verdict);
    Withdraw(subject);
    standing_.emplace(++last_, verdict);
    numbers_[subject] = last_;
  }
  WakeAll();
}

void VerdictLog::WithdrawLost(const v1::ResultKey& key) {
  MutexLock lock(mutex_);
  Withdraw(SubjectOf(key));
}

void VerdictLog::WithdrawStartGraceExpired(const std::string& run) {
  MutexLock lock(mutex_);
  Withdraw(run);
}

void VerdictLog::Withdraw(const std::string& subject) {
  const auto number = numbers_.find(subject);
  if (number == numbers_.end()) return;
  standing_.erase(number->second);
  numbers_.erase(number);
}

std::optional<VerdictLog::Numbered> VerdictLog::Next(uint64_t after) const {
  MutexLock lock(mutex_);
  const auto next = standing_.upper_bound(after);
  if (next == standing_.end()) return std::nullopt;
  return Numbered{next->first, next->second};
}

size_t VerdictLog::standing() const {
  MutexLock lock(mutex_);
  return standing_.size();
}

VerdictLog::Handle VerdictLog::Watch(std::function<void()> wake) {
  MutexLock lock(mutex_);
  const uint64_t id = next_watch_++;
  watchers_.emplace(id, std::move(wake));
  return {nullptr, [this, id](void*) {
            MutexLock guard(mutex_);
            watchers_.erase(id);
          }};
}

void VerdictLog::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  WakeAll();
}

bool VerdictLog::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void VerdictLog::WakeAll() const {
  std::vector<std::function<void()>> wakes;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, wake] : watchers_) wakes.push_back(wake);
  }
  for (const auto& wake : wakes) wake();
}

}  // namespace muster
