// The calls that a listener accepts, before any handler.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALL_ADMISSION_H_
#define MUSTER_SERVICES_COMMON_RPC_CALL_ADMISSION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"
#include "services/common/base/token_buckets.h"

namespace muster {

struct CallLimits {
  TokenBuckets::Rate rate;              // of the calls of one identity
  int64_t waiting_calls = 0;            // of one peer: see CallAdmission
  int64_t waiting_forwarded_calls = 0;  // of these, those for one other identity
};

// Bounds the calls of each identity, and those that wait for a thread of gRPC. A call waits from
// its headers on until gRPC calls its handler. gRPC counts a stream that the peer resets no more,
// while its call still waits and holds memory. So a peer that resets each stream immediately makes
// a queue without a bound, in which the calls of all other peers wait too. A client of a gateway or
// relay can make it do so: its waiting calls are bounded within those of the peer.
//
// gRPC never starts a call that was reset early enough. A waiting call is therefore forgotten after
// one to two periods. Thread-safe; never waits.
class CallAdmission {
 public:
  static constexpr absl::Duration kPeriod = absl::Seconds(10);

  // Accepts a call of `caller` on a connection of `peer`: any names of which Start gets the same,
  // equal for the peer's own calls. The rate is that of `holder` (HolderOf). RESOURCE_EXHAUSTED
  // (TOO_MANY_CALLS, TOO_MANY_WAITING_CALLS) at a limit. `now` is of Clock::MonotonicNow.
  absl::Status Accept(std::string_view peer, std::string_view caller, std::string_view holder,
                      const CallLimits& limits, absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // An accepted call of `caller` by `peer` waits no longer. Returns true if so many of the peer's
  // own calls were refused in this period that its connection should be closed: no client of ours
  // retries as often. Refused calls that it forwarded are not counted.
  bool Start(std::string_view peer, std::string_view caller, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t waiting(std::string_view peer) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The calls that began to wait in this period, and in the one before it.
  struct Waiting {
    int64_t current = 0;
    int64_t earlier = 0;
    int64_t sum() const { return current + earlier; }
    void Remove();
    void BeginPeriod(bool all_forgotten);
  };
  struct Peer {
    Waiting waiting;
    int64_t refused = 0;                                  // own calls, in this period
    int64_t limit = 0;                                    // of waiting calls
    absl::flat_hash_map<std::string, Waiting> forwarded;  // by caller; never empty ones
  };

  void BeginPeriods(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TokenBuckets rates_;
  mutable Mutex mutex_;
  absl::Duration period_ ABSL_GUARDED_BY(mutex_);  // its start
  absl::flat_hash_map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALL_ADMISSION_H_
