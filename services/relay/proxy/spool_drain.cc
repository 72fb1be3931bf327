#include "services/relay/proxy/spool_drain.h"

#include "absl/random/random.h"
#include "services/relay/proxy/spool_drain_step.h"

namespace muster {
namespace {

// A large result on a slow connection must not delay the others.
constexpr int kThreads = 3;

// The longest time between two looks at the queue.
constexpr absl::Duration kIdle = absl::Seconds(2);
constexpr absl::Duration kSweep = absl::Seconds(5);

}  // namespace

SpoolDrain::SpoolDrain(Spool& spool, Upstream& way) : spool_(spool), way_(way), peer_(spool, way) {
  watch_ = way.OnChange([this] { Wake(); });
  spool.set_on_complete([this] { Wake(); });
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

SpoolDrain::~SpoolDrain() {
  watch_.reset();
  for (std::jthread& thread : threads_) thread.request_stop();
}

void SpoolDrain::Wake() {
  MutexLock lock(mutex_);
  ++events_;
  wake_.NotifyAll();
}

// Waits for a change, at most for `delay`.
void SpoolDrain::Wait(absl::Duration delay, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  const uint64_t seen = events_;
  wake_.WaitFor(mutex_, stop, delay,
                [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return events_ != seen; });
}

void SpoolDrain::SweepIfDue() {
  {
    MutexLock lock(mutex_);
    const absl::Duration now = SystemClock().MonotonicNow();
    if (now < next_sweep_) return;
    next_sweep_ = now + kSweep;
  }
  spool_.Sweep();
}

void SpoolDrain::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    SweepIfDue();
    if (!way_.connected()) {
      Wait(kIdle, stop);
      continue;
    }
    switch (DeliverNext(spool_, peer_, stop)) {
      case DrainStep::kNothingDue:
        Wait(kIdle, stop);
        break;
      case DrainStep::kPeerUnavailable: {
        absl::BitGen random;
        Wait(absl::Milliseconds(absl::Uniform(random, 200, 3000)), stop);
        break;
      }
      case DrainStep::kFinished:
      case DrainStep::kRequeued:
        break;
    }
  }
}

}  // namespace muster
