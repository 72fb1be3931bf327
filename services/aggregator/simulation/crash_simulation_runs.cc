// Operators create and end runs; runs are sealed; the stores are verified and swept.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/aggregator/simulation/crash_simulation.h"
#include "services/aggregator/verify/blob_sweep.h"
#include "services/aggregator/verify/store_cursor.h"
#include "services/common/base/status_macros.h"

namespace muster::testing {
namespace {

using State = RunHistory::State;

constexpr char kActor[] = "spiffe://f.muster/service/aggregator";
constexpr int kMaxRuns = 3;  // at the same time
constexpr char kDefinition[] =
    "sonobuoy-config: {driver: DaemonSet, plugin-name: facts, result-format: raw}\n"
    "spec: {name: plugin, image: example/plugin:v1}\n";

std::string RunId(int number) { return absl::StrFormat("%016x", number); }

}  // namespace

absl::Status CrashSimulation::CreateRun() {
  const auto there = std::ranges::count_if(history_.runs, [](const auto& run) {
    return run.second.state != State::kDeleted && run.second.state != State::kNone;
  });
  if (there >= kMaxRuns) return absl::OkStatus();
  muster::CreateRun command;
  command.run.id = RunId(++runs_);
  command.run.request_id = command.run.id;
  command.run.created_at = absl::ToUnixMicros(clock_.Now());
  command.run.deadline_at = absl::ToUnixMicros(clock_.Now() + absl::Hours(1));
  command.run.plugins = {
      {.name = kPlugin, .has_image = true, .result_format = "raw", .definition_yaml = kDefinition}};
  RunHistory& run = history_.runs[command.run.id];
  for (uint64_t nodes = 1 + Chance(3); nodes > 0; --nodes) {
    const std::string node = absl::StrCat("n", nodes);
    command.pairs.push_back({kPlugin, node});
    run.pairs[node];
  }
  const absl::Status created = life_->store().ApplyAndWait(std::move(command)).status();
  life_->Settle();
  if (created.ok()) run.state = State::kLive;
  Log("create run", created);
  return absl::OkStatus();
}

absl::Status CrashSimulation::CancelRun() {
  for (auto& [id, run] : history_.runs) {
    if (run.state != State::kLive || !OneIn(2)) continue;
    const absl::Status cancelled = life_->Cancel(id);
    run.state = cancelled.ok() ? State::kEnded : State::kMaybeEnded;
    Log(absl::StrCat("cancel ", id), cancelled);
    break;
  }
  return absl::OkStatus();
}

absl::Status CrashSimulation::DeleteRun() {
  for (auto& [id, run] : history_.runs) {
    if (run.state != State::kEnded) continue;
    const absl::Status deleted = life_->Delete(id);
    run.state = deleted.ok() ? State::kDeleted : State::kMaybeDeleted;
    Log(absl::StrCat("delete ", id), deleted);
    break;
  }
  return absl::OkStatus();
}

// Ends the time of a run. Its pairs may still be delivered until it is sealed.
absl::Status CrashSimulation::TimeOutRun() {
  for (auto& [id, run] : history_.runs) {
    if (run.state != State::kLive || run.timed_out || !OneIn(2)) continue;
    const absl::Status ended = life_->TimeOut(id);
    run.timed_out = ended.ok();
    Log(absl::StrCat("time out ", id), ended);
    break;
  }
  return absl::OkStatus();
}

absl::Status CrashSimulation::SealRuns() {
  for (auto& [id, run] : history_.runs) {
    if (run.state != State::kLive) continue;
    const auto view = life_->store().GetRun(id);
    if (!view.ok() || !*view || (*view)->run.state != RunState::kPostProcessing) continue;
    const absl::Status sealed = life_->Seal(id);
    Log(absl::StrCat("seal ", id), sealed);
    if (absl::IsDataLoss(sealed)) return Broken(absl::StrCat("run ", id, " is sealed damaged"));
    run.state = sealed.ok() ? State::kEnded : State::kMaybeEnded;
    run.sealed = sealed.ok();
    if (sealed.ok()) continue;
    // The bytes may be partial data now: then a later open starts from the first byte.
    for (auto& [node, pair] : run.pairs) pair.LoseUploads();
    return faulty_ ? absl::OkStatus() : Broken("a run cannot be sealed");
  }
  return absl::OkStatus();
}

// Reads all that is stored, as the verification in the background does.
absl::Status CrashSimulation::Verify() {
  StoreCursor cursor(life_->store(), life_->blobs(), clock_, kActor, "");
  while (true) {
    const auto step = cursor.Step(1 << 20);
    life_->Settle();
    if (!step.ok()) {
      Log("verify", step.status());
      return faulty_ ? absl::OkStatus() : step.status();
    }
    if (!faulty_ && !step->damaged.empty()) {
      return Broken(absl::StrCat("verification finds: ", step->damaged.front().damage));
    }
    if (step->end) break;
  }
  const auto damaged = life_->store().DamagedResults();
  Log("verify", damaged.status());
  if (damaged.ok() && *damaged > 0) return Broken("verification records damage");
  return absl::OkStatus();
}

absl::Status CrashSimulation::SweepBlobs() {
  const auto swept = muster::SweepBlobs(life_->store(), life_->blobs());
  Log("sweep blobs", swept.status());
  return faulty_ ? absl::OkStatus() : swept.status();
}

}  // namespace muster::testing
