#include "services/common/service/service_threads.h"

#include <algorithm>

#include "services/common/rpc/limits.h"

namespace muster {
namespace {

constexpr size_t kBackgroundThreads = 6;
// One caller takes at most the threads for requests divided by this.
constexpr size_t kPartOfCaller = 2;

}  // namespace

ServiceThreads::ServiceThreads(size_t request_threads, size_t max_queue)
    : requests_({"request", request_threads, max_queue,
                 std::max<size_t>(1, request_threads / kPartOfCaller)}),
      background_({"background", kBackgroundThreads, max_queue}),
      timers_(MakeTimerService(kMaxStreamTimers)) {}

void ServiceThreads::Stop(absl::Duration limit) {
  requests_.Drain(limit).IgnoreError();
  background_.Drain(limit).IgnoreError();
  timers_->Stop();
}

}  // namespace muster
