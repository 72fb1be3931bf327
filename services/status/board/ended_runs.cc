#include "services/status/board/ended_runs.h"

#include <algorithm>
#include <utility>

#include "services/common/base/error.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/errors/rpc.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

constexpr absl::Duration kKeep = absl::Minutes(10);
constexpr CallerQuota::Limits kMaxWaiting = {.in_all = 1000, .of_caller = 100};

absl::Time TimeOf(const v1::FollowChangesResponse::PairChanged& pair) {
  return pair.has_time() ? FromProto(pair.time()) : absl::InfinitePast();
}

}  // namespace

void EndedRuns::Load(const std::shared_ptr<RunBoard>& run, std::string_view caller, Ready ready) {
  CallerQuota::Ticket ticket;
  switch (quota_.Reserve(caller, 1, kMaxWaiting, &ticket)) {
    case CallerQuota::Verdict::kReserved:
      break;
    case CallerQuota::Verdict::kFull:
      return ready(errors::Overloaded());
    case CallerQuota::Verdict::kCallerAtLimit:
      return ready(errors::TooManyWaitingCalls(kMaxWaiting.of_caller));
  }
  {
    MutexLock lock(mutex_);
    std::vector<Waiting>& waiting = waiting_[run->id()];
    waiting.push_back({std::move(ready), std::move(ticket)});
    if (waiting.size() > 1) return;
  }
  read_(
      run->id(),
      [run](const v1::FollowChangesResponse& event) {
        for (const auto& pair : event.pairs().pairs()) {
          run->SetPair(event.pairs().plugin(), pair, /*live=*/false, TimeOf(pair));
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
  std::vector<Waiting> waiting;
  {
    MutexLock lock(mutex_);
    waiting = std::move(waiting_.extract(run->id()).mapped());
  }
  for (Waiting& one : waiting) {
    if (status.ok()) {
      one.ready(run);
    } else {
      one.ready(status);
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
