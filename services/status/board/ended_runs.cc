#include "services/status/board/ended_runs.h"

#include <algorithm>
#include <utility>

#include "services/common/base/error.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

constexpr absl::Duration kKeep = absl::Minutes(10);
constexpr size_t kMaxWaiting = 1000;

absl::Time TimeOf(const v1::FollowChangesResponse::PairChanged& pair) {
  return pair.has_time() ? FromProto(pair.time()) : absl::InfinitePast();
}

}  // namespace

void EndedRuns::Load(const std::shared_ptr<RunBoard>& run, Ready ready) {
  {
    MutexLock lock(mutex_);
    if (waiting_count_ < kMaxWaiting) {
      std::vector<Ready>& waiting = waiting_[run->id()];
      waiting.push_back(std::exchange(ready, nullptr));
      ++waiting_count_;
      if (waiting.size() > 1) return;
    }
  }
  if (ready != nullptr) return ready(errors::Overloaded());
  read_(
      run->id(),
      [run](const v1::FollowChangesResponse& event) {
        for (const auto& pair : event.pairs().pairs()) {
          run->SetPair(pair, /*live=*/false, TimeOf(pair));
        }
      },
      [this, run](const absl::Status& status) { Finish(run, status); });
}

void EndedRuns::Finish(const std::shared_ptr<RunBoard>& run, absl::Status status) {
  if (status.ok() && !run->complete()) {
    status = absl::InternalError("the aggregator has sent fewer pairs than planned");
  }
  if (status.ok()) {
    restore_(run->id());
  } else if (ReasonOf(status) != "RUN_NOT_FOUND") {
    status = errors::PairsNotLoaded(run->id(), std::string(status.message()));
  }
  std::vector<Ready> waiting;
  {
    MutexLock lock(mutex_);
    waiting = std::move(waiting_.extract(run->id()).mapped());
    waiting_count_ -= waiting.size();
  }
  for (Ready& ready : waiting) {
    if (status.ok()) {
      ready(run);
    } else {
      ready(status);
    }
  }
}

void EndedRuns::MarkUsed(const std::string& run) {
  MutexLock lock(mutex_);
  used_[run] = clock_.MonotonicNow();
}

std::vector<std::string> EndedRuns::FindIdle(const std::vector<std::shared_ptr<RunBoard>>& runs) {
  struct Loaded {
    absl::Duration used;
    std::string run;
    size_t pairs;
  };
  const absl::Duration now = clock_.MonotonicNow();
  std::vector<Loaded> loaded;
  MutexLock lock(mutex_);
  std::map<std::string, absl::Duration> used;
  for (const auto& run : runs) {
    const size_t pairs = run->ended() ? run->pair_count() : 0;
    if (pairs == 0) continue;
    const auto found = used_.find(run->id());
    const absl::Duration at = found == used_.end() ? now : found->second;
    used[run->id()] = at;
    loaded.push_back({at, run->id(), pairs});
  }
  used_ = std::move(used);
  std::ranges::sort(loaded, std::ranges::greater(), &Loaded::used);
  std::vector<std::string> idle;
  size_t kept = 0;
  for (const Loaded& one : loaded) {
    const bool fits = kept == 0 || kept + one.pairs <= max_pairs_;
    if (fits && now - one.used <= kKeep) {
      kept += one.pairs;
    } else {
      idle.push_back(one.run);
    }
  }
  return idle;
}

}  // namespace muster
