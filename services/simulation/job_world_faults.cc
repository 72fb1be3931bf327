// The faults of a world of jobs, and its last phase without them.
#include <algorithm>
#include <cerrno>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "services/aggregator/simulation/crash_history.h"
#include "services/common/base/status_macros.h"
#include "services/simulation/job_world.h"

namespace muster::testing {
namespace {

using Call = SimulatedDisk::Call;

constexpr absl::Duration kSettleLimit = absl::Minutes(20);

}  // namespace

void JobWorld::Disturb() {
  if (calm_) return;
  network_.After(Soon(4'000), [this] { Disturb(); });
  JobNode& node = *nodes_[Chance(nodes_.size())];
  const std::string machines[] = {"root", "branch", "n1", "n2", "n3"};
  switch (Chance(11)) {
    case 0:
    case 1:
      if (root_.running()) EndRoot();
      break;
    case 2:
      RestartBranch();
      break;
    case 3:
    case 4:
      if (node.running()) EndNode(node);
      break;
    case 5:
    case 6:
      if (root_.running()) ScheduleFaults(root_.disk, root_.faulty);
      break;
    case 7:
    case 8:
      if (node.running()) ScheduleFaults(node.disk, node.faulty);
      break;
    case 9:
      network_.Partition(machines[Chance(std::size(machines))],
                         machines[Chance(std::size(machines))], Soon(OneIn(4) ? 60'000 : 5'000));
      Log("separate");
      break;
    default:
      network_.ResetOne();
  }
}

void JobWorld::ScheduleFaults(SimulatedDisk& disk, bool& faulty) {
  if (calm_) return;
  static constexpr Call kCalls[] = {
      Call::kSync,   Call::kSync, Call::kWrite,  Call::kWrite,    Call::kSyncFolder,
      Call::kCreate, Call::kOpen, Call::kRemove, Call::kTruncate, Call::kMakeFolder};
  faulty = true;
  if (OneIn(3)) {
    disk.FailAt(kCalls[Chance(std::size(kCalls))], 1 + static_cast<int>(Chance(10)),
                OneIn(3) ? ENOSPC : EIO);
  } else {
    disk.PowerOffAt(1 + static_cast<int>(Chance(25)));
  }
}

void JobWorld::StartRoot() {
  root_.faulty = false;
  if (OneIn(4)) ScheduleFaults(root_.disk, root_.faulty);
  const absl::Status started = root_.Start();
  Log("start root", started);
  if (started.ok()) return Break(CheckJobs());
  if (!root_.faulty || absl::IsDataLoss(started)) {
    return Break(Broken(absl::StrCat("the root relay does not start: ", started.ToString())));
  }
  EndRoot();
}

void JobWorld::EndRoot() {
  root_.disk.PowerOff();
  network_.Lose(root_.name());
  DropWatchers();
  root_.Stop();
  EndProcess(root_.disk, root_.name());
  network_.After(Soon(3'000), [this] { StartRoot(); });
}

void JobWorld::StartNode(JobNode& node) {
  node.faulty = false;
  if (OneIn(4)) ScheduleFaults(node.disk, node.faulty);
  const absl::Status started = node.Start();
  Log(absl::StrCat("start ", node.name()), started);
  if (started.ok()) return;
  if (!node.faulty) {
    return Break(Broken(absl::StrCat(node.name(), " does not start: ", started.ToString())));
  }
  EndNode(node);
}

void JobWorld::EndNode(JobNode& node) {
  node.disk.PowerOff();
  network_.Lose(node.name());
  node.Stop();
  EndProcess(node.disk, node.name());
  network_.After(Soon(3'000), [this, &node] { StartNode(node); });
}

// By a kill, or by the loss of power.
void JobWorld::EndProcess(SimulatedDisk& disk, const std::string& name) {
  ++crashes_;
  const bool power_lost = OneIn(2);
  Log(absl::StrCat(power_lost ? "power lost: " : "killed: ", name));
  if (power_lost) {
    disk.Crash(chance_());
  } else {
    disk.Restart();
  }
}

void JobWorld::RestartBranch() {
  ++crashes_;
  Log("killed: branch");
  network_.Lose(branch_.name());
  branch_.Stop();
  branch_.Start();
}

absl::Status JobWorld::Settle() {
  calm_ = true;
  network_.Calm();
  Log("no more faults");
  if (root_.running()) EndRoot();
  for (const auto& node : nodes_) {
    if (node->running()) EndNode(*node);
  }
  const absl::Duration end = network_.now() + kSettleLimit;
  RunUntil([&] { return network_.now() > end || IsSettled(); });
  RETURN_IF_ERROR(broken_);
  if (!IsSettled()) {
    std::string busy = absl::StrCat("root: ", root_.board().running());
    for (const auto& node : nodes_) absl::StrAppend(&busy, " ", node->name(), ": ", node->busy());
    return Broken(absl::StrCat("not every job ends in time; ", busy));
  }
  return CheckJobs();
}

bool JobWorld::IsSettled() {
  const auto is_idle = [](const auto& node) {
    return node->running() && !node->faulty && node->busy() == 0;
  };
  const auto is_seen = [](const auto& job) {
    return job.second.watcher == nullptr || job.second.watcher->ended();
  };
  return root_.running() && !root_.faulty && root_.board().running() == 0 &&
         std::ranges::all_of(nodes_, is_idle) && std::ranges::all_of(jobs_, is_seen);
}

}  // namespace muster::testing
