// Conclusions from missing heartbeats, and the streams that follow them.
#ifndef MUSTER_SERVICES_STATUS_BOARD_VERDICT_LOG_H_
#define MUSTER_SERVICES_STATUS_BOARD_VERDICT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/verdicts.pb.h"
#include "services/common/base/mutex.h"
#include "services/status/board/reasons.h"

namespace muster {

// Returns when a pair is lost if nothing changes, in monotonic time: its sender is silent for
// `lost_after` then. The infinite future if it is finished, its sender is not silent for at least
// three heartbeats, or the fault may be on the side of this service.
absl::Duration LostAt(const PairFacts& facts, absl::Duration lost_after);

// "CRASHED: its connection was closed without a goodbye". The verdict contains the time as `since`.
std::string WhyLost(v1::Reason reason, const PairFacts& facts, const Moment& now);

// The current verdicts, in the order of Add. Thread-safe.
class VerdictLog {
 public:
  // A second one for the same pair, or run, replaces the first.
  void Add(const v1::Verdict& verdict);
  void WithdrawLost(const v1::ResultKey& key);
  void WithdrawStartGraceExpired(const std::string& run);

  // The first that stands after number `after`, with its number.
  struct Numbered {
    uint64_t number;
    v1::Verdict verdict;
  };
  std::optional<Numbered> Next(uint64_t after) const;
  size_t standing() const;

  // Calls `wake` after each Add, until the handle is destroyed. It must not block.
  using Handle = std::shared_ptr<void>;
  Handle Watch(std::function<void()> wake);
  // Wakes all followers, so that they can send a heartbeat.
  void WakeAll() const;

  // The service stops: wakes the followers, which receive nothing more.
  void Close();
  bool closed() const;

 private:
  void Withdraw(const std::string& subject) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, v1::Verdict> standing_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> numbers_ ABSL_GUARDED_BY(mutex_);  // by subject
  uint64_t next_watch_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::function<void()>> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_VERDICT_LOG_H_
