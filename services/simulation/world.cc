#include "services/simulation/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/aggregator/simulation/simulated_fleet.h"
#include "services/aggregator/verify/blob_sweep.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster::testing {
namespace {

using State = RunHistory::State;

constexpr int kMaxRuns = 3;  // that accept results

std::string Sha256Of(const std::string& content) { return DigestBytes(Sha256::Of(content)); }

// Large enough for a blob, or small enough for the row.
std::string ContentOf(const ResultKey& key, int64_t attempt, uint64_t seed) {
  const std::string name = absl::StrCat(seed, " ", key.run, " ", key.node, " ", attempt, "\n");
  std::mt19937_64 chance(Crc32c(name));
  const size_t size =
      chance() % 3 == 0 ? static_cast<size_t>(kInlineLimit) + chance() % 30'000 : chance() % 9000;
  std::string content;
  while (content.size() < size) content += name;
  content.resize(size);
  return content;
}

// Returns whether no later attempt of the same result has another outcome.
bool IsFinal(const absl::Status& status) {
  return !absl::IsUnavailable(status) && !absl::IsAborted(status) &&
         !absl::IsResourceExhausted(status) && !absl::IsInternal(status) &&
         ReasonOf(status) != "UPLOAD_NOT_FOUND";
}

}  // namespace

World::World(uint64_t seed, int crashes)
    : seed_(seed),
      wanted_crashes_(crashes),
      chance_(seed),
      network_(seed + 1),
      aggregator_(seed + 2),
      relay_(seed + 3, network_, aggregator_, [this](const auto& done) { RunUntil(done); }),
      status_(network_, aggregator_) {
  disks_.Mount(AggregatorMachine::kName, aggregator_.disk);
  disks_.Mount(RelayMachine::kName, relay_.disk);
  vfs_ = std::make_unique<sqlite::SimulatedVfs>(disks_, seed);
  network_.set_on_time([this](absl::Duration by) {
    aggregator_.clock.Advance(by);
    relay_.clock.Advance(by);
    status_.clock.Advance(by);
  });
}

World::~World() {
  status_.Stop();
  relay_.Stop();
  aggregator_.Stop();
}

absl::Status World::Run() {
  for (auto [disk, folder] : {std::pair(&aggregator_.disk, AggregatorMachine::kName),
                              std::pair(&relay_.disk, RelayMachine::kName)}) {
    RETURN_IF_ERROR(disk->MakeFolder(absl::StrCat("/", folder)));
    RETURN_IF_ERROR(disk->SyncFolder("/"));
  }
  StartAggregator();
  StartRelay();
  status_.Start();
  Every(absl::Milliseconds(200), [this] {
    const bool separated = network_.IsPartitioned(relay_.machine(), aggregator_.machine());
    relay_.SetConnected(aggregator_.running() && !separated);
    if (aggregator_.running()) Break(status_.Follow());
  });
  Every(absl::Milliseconds(300), [this] { relay_.Deliver(); });
  Every(absl::Seconds(5), [this] {
    if (relay_.running()) relay_.Sweep();
    if (aggregator_.running()) aggregator_.life().SweepUploads();
  });
  Every(absl::Seconds(1), [this] {
    if (aggregator_.running()) SealRuns();
    Break(relay_.CheckPromises());
    AskForStatus();
    if (!calm_) CreateRun();
  });
  network_.After(absl::Seconds(1), [this] { Disturb(); });
  RunUntil([this] { return crashes_ >= wanted_crashes_; });
  RETURN_IF_ERROR(broken_);
  return Settle();
}

void World::Every(absl::Duration period, const std::function<void()>& work) {
  network_.After(period, [this, period, work] {
    work();
    Every(period, work);
  });
}

void World::RunUntil(const std::function<bool()>& condition) {
  while (broken_.ok() && !condition()) Advance();
}

void World::Advance() {
  network_.RunNext();
  aggregator_.AwaitIdle();
  relay_.AwaitIdle();
  if (!aggregator_.failing()) Break(aggregator_.Flush());
  if (aggregator_.running() && aggregator_.failing()) EndAggregator();
  if (!relay_.disk.powered_off()) Break(relay_.Flush());
  if (relay_up_ && (relay_.disk.powered_off() || !relay_.running())) EndRelay();
}

// ---- Work ----

void World::CreateRun() {
  const auto live = std::ranges::count_if(aggregator_.history.runs, [](const auto& run) {
    return run.second.state != State::kDeleted && run.second.state != State::kNone;
  });
  if (!aggregator_.running() || live >= kMaxRuns) return EndOneRun();
  muster::CreateRun command;
  command.run.id = absl::StrFormat("%016x", ++runs_);
  command.run.request_id = command.run.id;
  command.run.created_at = absl::ToUnixMicros(aggregator_.clock.Now());
  command.run.deadline_at = absl::ToUnixMicros(aggregator_.clock.Now() + absl::Hours(10));
  command.run.plugins = {{.name = kPlugin, .has_image = true, .result_format = "raw"}};
  RunHistory& run = aggregator_.history.runs[command.run.id];
  for (uint64_t nodes = 1 + Chance(4); nodes > 0; --nodes) {
    const std::string node = absl::StrCat("n", nodes);
    command.pairs.push_back({kPlugin, node});
    run.pairs[node];
    const ResultKey key = {command.run.id, kPlugin, node};
    AddSender(key, 1);
    if (OneIn(4)) AddSender(key, 2);  // another agent with the same identity
  }
  const absl::Status created = aggregator_.life().store().ApplyAndWait(std::move(command)).status();
  aggregator_.life().Settle();
  if (created.ok()) run.state = State::kLive;
  Log(absl::StrCat("create run ", runs_), created);
}

void World::EndOneRun() {
  if (!aggregator_.running()) return;
  for (auto& [id, run] : aggregator_.history.runs) {
    if (run.state == State::kLive && OneIn(20)) {
      const absl::Status cancelled = aggregator_.life().Cancel(id);
      run.state = cancelled.ok() ? State::kEnded : State::kMaybeEnded;
      return Log(absl::StrCat("cancel ", id), cancelled);
    }
    if (run.state == State::kEnded && OneIn(3)) {
      const absl::Status deleted = aggregator_.life().Delete(id);
      run.state = deleted.ok() ? State::kDeleted : State::kMaybeDeleted;
      return Log(absl::StrCat("delete ", id), deleted);
    }
  }
}

// Seals runs whose pairs all have outcomes, without an archive.
void World::SealRuns() {
  for (auto& [id, run] : aggregator_.history.runs) {
    if (run.state != State::kLive || !OneIn(3)) continue;
    const auto view = aggregator_.life().store().GetRun(id);
    if (!view.ok() || !*view || (*view)->run.state != RunState::kPostProcessing) continue;
    const absl::Status sealed = aggregator_.life().Seal(id);
    if (absl::IsDataLoss(sealed)) Break(Broken(absl::StrCat("run ", id, " is sealed damaged")));
    run.state = sealed.ok() ? State::kEnded : State::kMaybeEnded;
    run.sealed = sealed.ok();
    if (sealed.ok()) CheckSealed(id, run);
    if (!sealed.ok()) {
      // The bytes may be partial data now: then a later open starts from the first byte.
      for (auto& [node, pair] : run.pairs) pair.LoseUploads();
    }
    Log(absl::StrCat("seal ", id), sealed);
  }
}

// Each node has its result until the commit, whatever the relay reports or loses.
void World::CheckSealed(const std::string& id, const RunHistory& run) {
  for (const auto& [node, pair] : run.pairs) {
    const auto result = aggregator_.life().store().GetResult({id, kPlugin, node});
    if (!result.ok() || !*result || (*result)->outcome == Outcome::kGenuine) continue;
    Break(Broken(absl::StrCat("run ", id, " is sealed without the result of ", node)));
  }
}

void World::AskForStatus() {
  if (!status_.running() || runs_ == 0) return;
  status_.Ask(absl::StrFormat("%016x", 1 + Chance(runs_)));
}

void World::AddSender(const ResultKey& key, int64_t attempt) {
  Sender& sender = *senders_.emplace_back(std::make_unique<Sender>());
  sender.key = key;
  sender.attempt = attempt;
  sender.content = ContentOf(key, attempt, seed_);
  sender.by_relay = OneIn(2);
  aggregator_.history.runs[key.run].pairs[key.node].Send(Sha256Of(sender.content), sender.content);
  DeliverLater(sender, Soon(5'000));
}

void World::DeliverLater(Sender& sender, absl::Duration delay) {
  network_.After(delay, [this, &sender, life = sender.life] {
    if (!sender.done && sender.life == life) Deliver(sender);
  });
}

UploadClient::Upload World::UploadOf(const Sender& sender) const {
  const auto size = static_cast<int64_t>(sender.content.size());
  const std::string sha256 = Sha256Of(sender.content);
  UploadClient::Upload upload;
  upload.content = sender.content;
  v1::ResultDescription& description = *upload.open.mutable_description();
  description.mutable_key()->set_run(sender.key.run);
  description.mutable_key()->set_plugin(sender.key.plugin);
  description.mutable_key()->set_node(sender.key.node);
  description.set_attempt(sender.attempt);
  description.set_file_name("f");
  upload.open.set_size(size);
  upload.open.set_sha256(sha256);
  upload.finish.set_size(size);
  upload.finish.set_crc32c(Crc32c(sender.content));
  upload.finish.set_sha256(sha256);
  *upload.finish.mutable_signature() =
      SimulatedFleet::Get().Sign({.run = sender.key.run,
                                  .plugin = sender.key.plugin,
                                  .node = sender.key.node,
                                  .attempt = sender.attempt,
                                  .size = size,
                                  .sha256 = sha256,
                                  .media_type = description.media_type(),
                                  .file_name = description.file_name()});
  return upload;
}

void World::Deliver(Sender& sender) {
  if (OneIn(10)) sender.by_relay = !sender.by_relay;
  UploadServer& server = sender.by_relay ? static_cast<UploadServer&>(relay_)
                                         : static_cast<UploadServer&>(aggregator_);
  const Caller caller = {.identity = {SimulatedFleet::kName, NodeIdentity{sender.key.node}}};
  // A second connection may follow before the first one is lost.
  for (int connections = OneIn(20) ? 2 : 1; connections > 0; --connections) {
    sender.clients.push_back(
        UploadClient::Begin(network_, sender.key.node, caller, server, UploadOf(sender), chance_(),
                            [this, &sender, only = connections == 1](const auto& outcome) {
                              if (IsBroken(outcome.status())) return Break(outcome.status());
                              if (only) HandleOutcome(sender, outcome);
                            }));
  }
}

void World::HandleOutcome(Sender& sender, const absl::StatusOr<UploadClient::Receipt>& outcome) {
  Log(absl::StrCat(sender.key.run.substr(12), " ", sender.key.node, " attempt ", sender.attempt,
                   sender.by_relay ? " by the relay" : "",
                   outcome.ok() && outcome->spooled ? " is spooled" : ""),
      outcome.status());
  sender.clients.clear();
  if (outcome.ok()) {
    // Some nodes leave a result to the relay and forget it: then its disk keeps the bytes.
    const bool forgets = !calm_ && OneIn(3) && !relay_.HasLost(sender.key);
    sender.done = !outcome->spooled || forgets;
    if (outcome->spooled && forgets) relay_.Keep(sender.key);
  } else {
    sender.done = IsFinal(outcome.status());
  }
  if (!sender.done) DeliverLater(sender, Soon(outcome.ok() ? 20'000 : 2'000));
}

void World::Break(const absl::Status& broken) {
  if (broken_.ok() && !broken.ok()) broken_ = broken;
}

void World::Log(std::string_view what, const absl::Status& outcome) {
  absl::StrAppend(&log_, absl::FormatDuration(network_.now()), " ", aggregator_.disk.changes(), " ",
                  relay_.disk.changes(), " ", ToAbsl(what), " ", outcome.message(), "\n");
}

}  // namespace muster::testing
