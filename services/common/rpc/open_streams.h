// The streams that are open, by method and by caller.
#ifndef MUSTER_SERVICES_COMMON_RPC_OPEN_STREAMS_H_
#define MUSTER_SERVICES_COMMON_RPC_OPEN_STREAMS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"

namespace muster {

// How many streams of one method may be open; zero: any number.
struct StreamLimits {
  int64_t in_all = 0;
  int64_t of_caller = 0;
};

// Counts streams and enforces limits. Thread-safe. Must outlive its tickets.
class OpenStreams {
 public:
  explicit OpenStreams(Metrics& metrics);

  // Counts one stream for as long as it exists. Movable.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&& other) noexcept { *this = std::move(other); }
    Ticket& operator=(Ticket&& other) noexcept;
    ~Ticket() { Release(); }

   private:
    friend class OpenStreams;
    void Release();

    OpenStreams* streams_ = nullptr;
    std::string_view method_;
    std::string caller_;  // empty: not counted by caller
  };

  // Counts a stream of `caller`, a URI. `method` outlives the ticket. RESOURCE_EXHAUSTED
  // (TOO_MANY_STREAMS, TOO_MANY_STREAMS_OF_CALLER) at a limit.
  absl::StatusOr<Ticket> Enter(std::string_view method, std::string_view caller,
                               const StreamLimits& limits);

  int64_t Count(std::string_view method) const;

 private:
  using Key = std::pair<std::string, std::string>;  // method, caller

  void Leave(std::string_view method, const std::string& caller);

  const Labelled<Gauge> gauge_;
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, int64_t> of_method_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Key, int64_t> of_caller_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_OPEN_STREAMS_H_
