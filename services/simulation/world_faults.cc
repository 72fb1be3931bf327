// The faults of a world, and its last phase without them.
#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "services/aggregator/verify/blob_sweep.h"
#include "services/common/base/status_macros.h"
#include "services/simulation/world.h"

namespace muster::testing {
namespace {

using Call = SimulatedDisk::Call;
using State = RunHistory::State;

constexpr absl::Duration kSettleLimit = absl::Minutes(20);

}  // namespace

void World::Disturb() {
  if (calm_) return;
  network_.After(Soon(600), [this] { Disturb(); });
  FakeClock* const clocks[] = {&aggregator_.clock, &relay_.clock, &status_.clock};
  const char* const machines[] = {AggregatorMachine::kName, RelayMachine::kName,
                                  StatusMachine::kName, "n1", "n2"};
  switch (Chance(14)) {
    case 0:
    case 1:
      if (aggregator_.running()) EndAggregator();
      break;
    case 2:
    case 3:
      relay_.BeginStop();
      break;
    case 4:
      RestartStatus();
      break;
    case 5:
      KillSender();
      break;
    case 6:
    case 7:
      if (aggregator_.running()) ScheduleFaults(aggregator_.disk, aggregator_.faulty);
      break;
    case 8:
    case 9:
      if (relay_.running()) ScheduleFaults(relay_.disk, relay_.faulty);
      break;
    case 10: {
      const uint64_t a = Chance(std::size(machines));
      const uint64_t b = Chance(std::size(machines));
      Log(absl::StrCat("separate ", machines[a], " ", machines[b]));
      network_.Partition(machines[a], machines[b], Soon(OneIn(4) ? 20'000 : 3'000));
      break;
    }
    case 11: {
      FakeClock& clock = *clocks[Chance(std::size(clocks))];
      clock.JumpWall(clock.Now() + Soon(240'000) - absl::Minutes(2));
      Log("a clock jumps");
      break;
    }
    default:
      network_.ResetOne();
  }
}

void World::ScheduleFaults(SimulatedDisk& disk, bool& faulty) {
  if (calm_) return;
  static constexpr Call kCalls[] = {
      Call::kSync,       Call::kSync,   Call::kSync,     Call::kWrite,   Call::kWrite,
      Call::kSyncFolder, Call::kRename, Call::kCreate,   Call::kOpen,    Call::kRead,
      Call::kSyncFolder, Call::kRemove, Call::kTruncate, Call::kReserve, Call::kMakeFolder,
      Call::kList,       Call::kStat,   Call::kSpace};
  faulty = true;
  if (OneIn(3)) {
    disk.FailAt(kCalls[Chance(std::size(kCalls))], 1 + static_cast<int>(Chance(30)),
                OneIn(3) ? ENOSPC : EIO);
  } else {
    disk.PowerOffAt(1 + static_cast<int>(Chance(60)));
  }
}

void World::StartAggregator() {
  aggregator_.faulty = false;
  if (OneIn(4)) ScheduleFaults(aggregator_.disk, aggregator_.faulty);
  const absl::Status started = aggregator_.Start();
  Log("start aggregator", started);
  if (started.ok()) return Break(relay_.CheckPromises());
  if (IsBroken(started)) return Break(started);
  if (!aggregator_.faulty || absl::IsDataLoss(started)) {
    return Break(Broken(absl::StrCat("the aggregator does not start: ", started.ToString())));
  }
  EndAggregator();
}

void World::EndAggregator() {
  aggregator_.disk.PowerOff();
  network_.Lose(aggregator_.machine());
  status_.DropSource();
  aggregator_.Stop();
  EndProcess(aggregator_.disk, aggregator_, "aggregator");
  network_.After(Soon(500), [this] { StartAggregator(); });
}

void World::StartRelay() {
  relay_.faulty = false;
  if (OneIn(4)) ScheduleFaults(relay_.disk, relay_.faulty);
  relay_up_ = true;
  const absl::Status started = relay_.Start(disks_);
  Log("start relay", started);
  if (started.ok()) return Break(relay_.CheckPromises());
  if (!relay_.faulty || absl::IsDataLoss(started)) {
    return Break(Broken(absl::StrCat("the relay does not start: ", started.ToString())));
  }
  EndRelay();
}

// A delivery that is being made ends first: its function uses the process.
void World::EndRelay() {
  relay_.BeginStop();
  relay_.disk.PowerOff();
  if (relay_.delivering()) return;
  relay_.Stop();
  relay_up_ = false;
  EndProcess(relay_.disk, relay_, "relay");
  if (!calm_ && OneIn(4)) relay_.LoseBytes();
  network_.After(Soon(500), [this] { StartRelay(); });
}

// By a kill, or by the loss of power.
void World::EndProcess(SimulatedDisk& disk, UploadServer& server, const char* name) {
  ++crashes_;
  const bool power_lost = OneIn(2);
  Log(absl::StrCat(power_lost ? "power lost: " : "killed: ", name));
  if (!power_lost) return disk.Restart();
  disk.Crash(chance_());
  server.LosePower();
}

void World::RestartStatus() {
  ++crashes_;
  Log("killed: status");
  status_.Stop();
  status_.Start();
}

void World::KillSender() {
  if (senders_.empty()) return;
  Sender& sender = *senders_[Chance(senders_.size())];
  if (sender.done) return;
  ++crashes_;
  Log(absl::StrCat("killed: ", sender.key.node));
  for (const auto& client : sender.clients) client->Abandon();
  sender.clients.clear();
  ++sender.life;
  DeliverLater(sender, Soon(2'000));
}

// Everything that was accepted is delivered, and everything that is stored has an owner.
absl::Status World::Settle() {
  calm_ = true;
  network_.Calm();
  Log("no more faults");
  // Corrected: no proof of a relay is from the future.
  const absl::Time now = std::max(aggregator_.clock.Now(), relay_.clock.Now());
  for (FakeClock* clock : {&aggregator_.clock, &relay_.clock, &status_.clock}) clock->JumpWall(now);
  if (aggregator_.running()) EndAggregator();
  if (relay_.running()) EndRelay();
  const absl::Duration end = network_.now() + kSettleLimit;
  RunUntil([&] { return network_.now() > end || IsSettled(); });
  RETURN_IF_ERROR(broken_);
  if (!IsSettled()) return Broken("not everything is delivered in time");
  return CheckEnd();
}

bool World::IsSettled() {
  if (!aggregator_.running() || !relay_.running() || aggregator_.faulty || relay_.faulty ||
      relay_.waiting() > 0 || relay_.delivering()) {
    return false;
  }
  if (std::ranges::any_of(senders_, [](const auto& sender) { return !sender->done; })) return false;
  // A node that gave up delivers again.
  bool all = true;
  for (auto& [id, run] : aggregator_.history.runs) {
    if (run.state != State::kLive) continue;
    for (auto& [node, pair] : run.pairs) {
      if (!pair.committed().empty()) continue;
      all = false;
      int64_t attempt = 0;
      for (const auto& sender : senders_) {
        if (sender->key.run == id && sender->key.node == node) {
          attempt = std::max(attempt, sender->attempt);
        }
      }
      AddSender({id, kPlugin, node}, attempt + 1);
    }
  }
  return all && status_.up_to_date();
}

absl::Status World::CheckEnd() {
  RETURN_IF_ERROR(aggregator_.Compare());
  RETURN_IF_ERROR(relay_.CheckPromises());
  status_.AskForAll();
  const absl::Duration end = network_.now() + kSettleLimit;
  RunUntil([&] { return network_.now() > end || status_.answered(); });
  RETURN_IF_ERROR(broken_);
  RETURN_IF_ERROR(status_.Follow());
  if (!status_.answered()) return Broken("the status service does not answer");
  senders_.clear();
  aggregator_.DropStreams();
  aggregator_.clock.Advance(SimulatedAggregator::kExpiry + absl::Seconds(1));
  aggregator_.life().SweepUploads();
  RETURN_IF_ERROR(SweepBlobs(aggregator_.life().store(), aggregator_.life().blobs()).status());
  return aggregator_.history.CheckBlobs(aggregator_.life().store(), aggregator_.life().blobs());
}

}  // namespace muster::testing
