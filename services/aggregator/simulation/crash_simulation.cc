#include "services/aggregator/simulation/crash_simulation.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster::testing {
namespace {

using Call = SimulatedDisk::Call;
using State = RunHistory::State;

constexpr int64_t kCapacity = int64_t{1} << 40;
constexpr int kLastAttempt = 3;

}  // namespace

CrashSimulation::CrashSimulation(uint64_t seed)
    : seed_(seed), chance_(seed), disk_(kCapacity, seed), vfs_(disk_, seed) {}

absl::Status CrashSimulation::Run() {
  RETURN_IF_ERROR(disk_.MakeFolder("/m"));
  RETURN_IF_ERROR(disk_.SyncFolder("/"));
  for (uint64_t lives = 2 + Chance(4); lives > 0; --lives) {
    const absl::Status lived = Live();
    Log("life ends", lived);
    if (IsBroken(lived)) return lived;
    End(lived.ok() && OneIn(3));
  }
  return LastLife();
}

// One life, with the faults that are scheduled for it.
absl::Status CrashSimulation::Live() {
  ScheduleFaults();
  auto started = SimulatedAggregator::Start(disk_, clock_);
  Log("start", started.status());
  if (!started.ok()) {
    if (!faulty_ || absl::IsDataLoss(started.status())) {
      return Broken(absl::StrCat("the store does not open: ", started.status().ToString()));
    }
    return started.status();
  }
  life_ = *std::move(started);
  RETURN_IF_ERROR(history_.Compare(life_->store(), life_->blobs(), faulty_));
  RETURN_IF_ERROR(journal_.Open(disk_, faulty_));
  for (uint64_t steps = 1 + Chance(25); steps > 0; --steps) {
    RETURN_IF_ERROR(Step());
    RETURN_IF_ERROR(CheckDisk());
    if (life_->failed() || disk_.powered_off()) return absl::CancelledError("the disk failed");
  }
  return history_.Compare(life_->store(), life_->blobs(), faulty_);
}

// Finds what only the loss of power at this time would show.
absl::Status CrashSimulation::CheckDisk() {
  for (const std::string& path : disk_.SyncedAfterLoss()) {
    // Useless bytes remain in the log of a staged file before its mark, and in a journal after its
    // last record.
    if (path.ends_with(".log") || path.ends_with(".lock") || path.ends_with("journal")) continue;
    return Broken(absl::StrCat(path, " was synced after a failed sync without its lost bytes"));
  }
  RETURN_IF_ERROR(journal_.CheckDurable(disk_));
  return history_.CheckDurable(life_->store(), disk_);
}

void CrashSimulation::ScheduleFaults() {
  faulty_ = OneIn(2);
  if (faulty_) {
    static constexpr Call kCalls[] = {
        Call::kSync,       Call::kSync,   Call::kSync,     Call::kWrite,   Call::kWrite,
        Call::kSyncFolder, Call::kRename, Call::kCreate,   Call::kOpen,    Call::kRead,
        Call::kSyncFolder, Call::kRemove, Call::kTruncate, Call::kReserve, Call::kMakeFolder,
        Call::kList,       Call::kStat,   Call::kSpace};
    for (uint64_t faults = 1 + Chance(2); faults > 0; --faults) {
      // Early calls too: some are rare.
      disk_.FailAt(kCalls[Chance(std::size(kCalls))],
                   1 + static_cast<int>(Chance(OneIn(3) ? 5 : 40)), OneIn(3) ? ENOSPC : EIO);
    }
  }
  if (OneIn(6)) {
    faulty_ = true;
    disk_.SetCapacity(disk_.used() + static_cast<int64_t>(Chance(300'000)));
  }
  if (OneIn(8)) {
    // A blob has its name, which is not durable.
    faulty_ = true;
    disk_.PowerOffAfter(Call::kRename, 1 + static_cast<int>(Chance(2)));
    return;
  }
  if (OneIn(2)) return;
  faulty_ = true;
  disk_.PowerOffAt(1 + static_cast<int>(Chance(OneIn(3) ? 40 : 400)));
}

// Ends the life by an exit, by a kill, or by the loss of power at any time until the next start.
void CrashSimulation::End(bool clean) {
  if (!clean) disk_.PowerOff();
  senders_.clear();
  journal_.Close();
  life_.reset();
  disk_.SetCapacity(kCapacity);
  const bool power_lost = OneIn(2);
  Log(clean ? "exit" : "kill");
  if (power_lost) {
    disk_.Crash(chance_());
    history_.LosePower();
    journal_.LosePower();
    Log("power lost");
  } else {
    disk_.Restart();
  }
}

// On a disk without faults: all uploads can be completed, and everything is stored once.
absl::Status CrashSimulation::LastLife() {
  faulty_ = false;
  ASSIGN_OR_RETURN(life_, SimulatedAggregator::Start(disk_, clock_));
  Log("last start");
  RETURN_IF_ERROR(history_.Compare(life_->store(), life_->blobs(), false));
  RETURN_IF_ERROR(journal_.Open(disk_, false));
  const bool in_time = !OneIn(3);
  for (auto& [id, run] : history_.runs) {
    if (run.state != State::kLive) continue;
    for (auto& [node, pair] : run.pairs) {
      if (!pair.committed().empty()) continue;
      const int last = attempts_[{id, node}];
      senders_[{id, node}].attempt = last > 0 && OneIn(2) ? last : kLastAttempt;
      RETURN_IF_ERROR(Deliver({id, node}, in_time));
      if (in_time && pair.committed().empty()) {
        return Broken(absl::StrCat(node, " cannot be delivered"));
      }
    }
    if (!in_time) run.timed_out = life_->TimeOut(id).ok();
  }
  RETURN_IF_ERROR(SealRuns());
  RETURN_IF_ERROR(history_.Compare(life_->store(), life_->blobs(), false));
  RETURN_IF_ERROR(Verify());
  RETURN_IF_ERROR(CheckDisk());
  senders_.clear();
  clock_.Advance(SimulatedAggregator::kExpiry + absl::Seconds(1));
  life_->SweepUploads();
  RETURN_IF_ERROR(SweepBlobs());
  RETURN_IF_ERROR(history_.CheckBlobs(life_->store(), life_->blobs()));
  End(true);
  ASSIGN_OR_RETURN(life_, SimulatedAggregator::Start(disk_, clock_));
  RETURN_IF_ERROR(history_.Compare(life_->store(), life_->blobs(), false));
  RETURN_IF_ERROR(journal_.Open(disk_, false));
  End(true);
  return absl::OkStatus();
}

absl::Status CrashSimulation::Step() {
  clock_.Advance(absl::Seconds(1));
  std::vector<Pair> pairs;
  for (auto& [id, run] : history_.runs) {
    if (run.state != State::kLive) continue;
    for (auto& [node, pair] : run.pairs) pairs.push_back({id, node});
  }
  if (OneIn(10)) return SealRuns();
  if (pairs.empty() || OneIn(20)) return CreateRun();
  const Pair& pair = pairs[Chance(pairs.size())];
  switch (Chance(17)) {
    case 0:
      return CancelRun();
    case 1:
      return DeleteRun();
    case 2:
      if (OneIn(3)) {
        clock_.Advance(SimulatedAggregator::kExpiry);
        for (auto& [id, run] : history_.runs) {
          for (auto& [node, pair] : run.pairs) pair.SetOpen("");
        }
      }
      life_->SweepUploads();
      Log("sweep uploads");
      senders_.clear();
      return absl::OkStatus();
    case 3:
      return SweepBlobs();
    case 4:
      return Verify();
    case 5:
      return TimeOutRun();
    case 6:
    case 10:
      return CommitDirectly(pair);
    case 7:
    case 8:
    case 9:
      journal_.Use(chance_);
      Log("journal");
      return absl::OkStatus();
    default:
      if (senders_[pair].session == nullptr || OneIn(10)) {
        // Most senders resume their upload.
        const bool resumes = attempts_.contains(pair) && !OneIn(4);
        senders_[pair] = {.attempt = resumes ? attempts_[pair]
                                             : 1 + static_cast<int>(Chance(kLastAttempt - 1))};
      }
      return Deliver(pair, OneIn(2));
  }
}

void CrashSimulation::Log(std::string_view step, const absl::Status& outcome) {
  absl::StrAppend(&log_, disk_.changes(), " ", ToAbsl(step), " ", outcome.message(), "\n");
}

}  // namespace muster::testing
