// The streams that are open, by method and by caller.
#ifndef MUSTER_SERVICES_COMMON_RPC_OPEN_STREAMS_H_
#define MUSTER_SERVICES_COMMON_RPC_OPEN_STREAMS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/caller_quota.h"

namespace muster {

// How many streams of one method may be open; zero: any number.
using StreamLimits = CallerQuota::Limits;

// Returns the limits for the streams of this caller: a service calls for its own clients, and may
// have any number. Many machines may share the credential of a plugin, which may have half of all.
StreamLimits LimitsOf(const Identity& caller, StreamLimits limits);

// Counts streams and enforces limits. Thread-safe. Must outlive its tickets.
class OpenStreams {
 public:
  explicit OpenStreams(Metrics& metrics);

  // Counts one stream for as long as it exists. Movable.
  using Ticket = CallerQuota::Ticket;

  // Counts a stream of `caller` (HolderOf). RESOURCE_EXHAUSTED (TOO_MANY_STREAMS,
  // TOO_MANY_STREAMS_OF_CALLER) at a limit.
  absl::StatusOr<Ticket> Enter(std::string_view method, std::string_view caller,
                               const StreamLimits& limits) ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t Count(std::string_view method) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Labelled<Gauge> gauge_;
  mutable Mutex mutex_;
  // Never erased, since tickets refer to them. By method.
  std::map<std::string, CallerQuota, std::less<>> quotas_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_OPEN_STREAMS_H_
