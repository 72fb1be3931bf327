#include "services/status/board/board.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/errors/runs.h"
#include "services/common/heartbeat/progress_report.h"
#include "services/status/board/run_summary.h"

namespace muster {
namespace {

constexpr int kPairsOfNode = 1000;
constexpr int kTicksBetweenPrunes = 60;
constexpr int kTicksBetweenWakes = 5;  // of a watcher, at most
constexpr absl::Duration kDropPeriod = absl::Seconds(1);

}  // namespace

Board::Board(Options options)
    : options_(std::move(options)),
      ended_(*options_.clock, options_.read_pairs, [this](const std::string& run) {
        options_.restore(run);
        RestorePairs();
      }) {
  context_.clock = options_.clock;
  context_.verdicts = options_.verdicts;
  context_.changed = [hub = options_.hub](const std::string& run) { hub->Changed(run); };
  context_.event = options_.event;
  context_.doubt = options_.doubt;
  context_.lost_relays = options_.lost_relays;
  context_.texts = &texts_;
  context_.ready_since = [this] { return absl::Nanoseconds(ready_since_.load()); };
}

void Board::Apply(const v1::FollowChangesResponse& event) {
  feed_micros_ = absl::ToUnixMicros(options_.clock->Now());
  switch (event.event_case()) {
    case v1::FollowChangesResponse::kSnapshotBegin:
      in_snapshot_ = true;
      snapshot_runs_.clear();
      break;
    case v1::FollowChangesResponse::kSnapshotEnd:
      EndSnapshot();
      break;
    case v1::FollowChangesResponse::kRun:
      ApplyRun(event.run());
      break;
    case v1::FollowChangesResponse::kPairs:
      ApplyPairs(event.pairs());
      break;
    case v1::FollowChangesResponse::kRunDeleted:
      RemoveRun(event.run_deleted().run());
      break;
    case v1::FollowChangesResponse::kRevoked:
    case v1::FollowChangesResponse::kOperatorRecorded:
    case v1::FollowChangesResponse::kRedelivery:
    case v1::FollowChangesResponse::kHeartbeat:
    case v1::FollowChangesResponse::EVENT_NOT_SET:
      break;
  }
  // Only while events arrive: otherwise the pairs could not be read again.
  if (!in_snapshot_) DropIdle();
}

void Board::ApplyRun(const v1::Run& run) {
  std::shared_ptr<RunBoard> board = Known(run.id());
  // A later snapshot lists the ended runs again, which have no more senders to report. Prune
  // forgets the senders as soon as the run has ended.
  const bool ends = board != nullptr && !board->ended() && IsEnded(run.state());
  const auto senders =
      ends ? sender_pairs_.OfRun(run.id()) : std::vector<std::shared_ptr<const Sender>>();
  // The feed lists no pairs of a run that has ended: the known ones may be out of date.
  if (board != nullptr && IsEnded(run.state()) && board->pair_count() > 0 &&
      (in_snapshot_ || !board->complete())) {
    board = DropPairs(*board);
  }
  if (board == nullptr) {
    board = std::make_shared<RunBoard>(run.id(), context_);
    board->SetRun(run);
    MutexLock lock(mutex_);
    runs_[run.id()] = {board, FromProto(run.create_time())};
  } else {
    board->SetRun(run);
  }
  if (in_snapshot_) snapshot_runs_.insert(run.id());
  ReportUnknownIfDone(senders);
}

void Board::ApplyPairs(const v1::FollowChangesResponse::PairsChanged& changes) {
  const auto run = Known(changes.run());
  if (run == nullptr || LacksPairs(*run)) return;  // deleted since, or they are read on request
  const absl::Time otherwise = in_snapshot_ ? absl::InfinitePast() : options_.clock->Now();
  for (const auto& change : changes.pairs()) {
    const absl::Time at = change.has_time() ? FromProto(change.time()) : otherwise;
    const RunBoard::PairSet set = run->SetPair(changes.plugin(), change, !in_snapshot_, at);
    if (set.added) nodes_.Plan(change.node());
    if (set.finished_for != nullptr) ReportIfDone(set.finished_for);
  }
}

void Board::ReportIfDone(const std::shared_ptr<const Sender>& sender) {
  const std::vector<v1::ResultKey> pairs = sender_pairs_.Of(*sender);
  const bool open = std::any_of(pairs.begin(), pairs.end(), [this](const v1::ResultKey& pair) {
    const auto run = Known(pair.run());
    return run != nullptr && run->IsOpen(pair.plugin(), pair.node());
  });
  if (!open) options_.done(sender);
}

// The work of a sender may have ended while this service could not receive its goodbye. Its silence
// is then no loss.
void Board::ReportUnknownIfDone(const std::vector<std::shared_ptr<const Sender>>& senders) {
  for (const auto& sender : senders) {
    if (sender->presence() == v1::PRESENCE_UNKNOWN) ReportIfDone(sender);
  }
}

void Board::RemoveRun(const std::string& run) {
  if (Known(run) == nullptr) return;
  Replace(run, nullptr);
  options_.gone(run);
}

std::shared_ptr<RunBoard> Board::DropPairs(const RunBoard& run) {
  auto bare = std::make_shared<RunBoard>(run.id(), context_);
  bare->SetRun(run.row());
  Replace(run.id(), bare);
  return bare;
}

// Called by Apply, which alone changes runs. Null: removes the run.
void Board::Replace(const std::string& run, std::shared_ptr<RunBoard> by) {
  Entry old;
  {
    MutexLock lock(mutex_);
    const auto entry = runs_.find(run);
    old = std::exchange(entry->second, {by, entry->second.created});
    if (by == nullptr) runs_.erase(entry);
  }
  old.board->Delete();
  if (old.loaded) return;
  for (const std::string& node : old.board->PlannedNodes()) nodes_.Unplan(node);
}

void Board::DropIdle() {
  const absl::Duration now = options_.clock->MonotonicNow();
  if (now - dropped_at_ < kDropPeriod) return;
  dropped_at_ = now;
  for (const std::string& run : ended_.FindIdle(Runs())) {
    const auto board = Known(run);
    if (board.use_count() <= 2) DropPairs(*board);  // otherwise a caller reads the pairs now
  }
}

void Board::EndSnapshot() {
  in_snapshot_ = false;
  for (const auto& run : Runs()) {
    if (!snapshot_runs_.contains(run->id())) {
      RemoveRun(run->id());
    } else if (!ready_ && !run->ended()) {
      options_.restore(run->id());
    }
  }
  RestorePairs();
  if (!ready_) options_.known(snapshot_runs_);
  if (!ready_) ready_since_ = absl::ToInt64Nanoseconds(options_.clock->MonotonicNow());
  ready_ = true;
  std::vector<std::shared_ptr<const Sender>> senders;
  {
    MutexLock lock(early_mutex_);
    for (auto& [name, sender] : std::exchange(early_, {})) senders.push_back(sender);
  }
  ReportUnknownIfDone(senders);
}

void Board::RestorePairs() {
  std::vector<RestoredPair> restored;
  {
    MutexLock lock(mutex_);
    restored = std::exchange(restored_, {});
  }
  for (RestoredPair& one : restored) {
    const auto run = Known(one.key.run());
    if (run == nullptr) continue;
    const std::shared_ptr<const Sender> sender = one.memory.sender;
    run->Restore(one.key, std::move(one.memory));
    if (sender == nullptr) continue;
    Attend(one.key, sender);
    run->SenderChanged(one.key.plugin(), one.key.node(), sender);
  }
}

void Board::RestoreContact(const v1::ResultKey& key, const std::string& uri, absl::Time first) {
  RunBoard::Memory memory{.first = first};
  {
    MutexLock lock(early_mutex_);
    const auto early = early_.find({uri, key.node()});
    if (early != early_.end()) memory.sender = early->second;
  }
  MutexLock lock(mutex_);
  restored_.push_back({key, std::move(memory)});
}

void Board::RestoreProgress(const v1::ResultKey& key, v1::Progress progress) {
  RunBoard::Memory memory{.progress = std::make_unique<v1::Progress>(std::move(progress))};
  MutexLock lock(mutex_);
  restored_.push_back({key, std::move(memory)});
}

std::shared_ptr<RunBoard> Board::Known(const std::string& run) const {
  MutexLock lock(mutex_);
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : found->second.board;
}

Board::Tally Board::MakeTally() const {
  Tally all;
  for (const auto& run : Runs()) {
    const RunBoard::Tally one = run->MakeTally();
    if (v1::RunState_IsValid(one.state)) ++all.runs[one.state];
    for (size_t i = 0; i < one.unfinished.size(); ++i) all.unfinished[i] += one.unfinished[i];
  }
  return all;
}

std::vector<std::shared_ptr<RunBoard>> Board::Runs() const {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<RunBoard>> runs;
  for (const auto& [id, entry] : runs_) runs.push_back(entry.board);
  return runs;
}

absl::StatusOr<std::shared_ptr<RunBoard>> Board::Find(const std::string& run) const {
  if (!ready_) return errors::StatusNotReady();
  auto found = Known(run);
  if (found == nullptr) return errors::RunNotFound(run);
  if (!found->complete()) return errors::StatusNotReady();
  return found;
}

// Asks the run without the lock: the run may be busy, and all other runs need the lock.
void Board::FindWithPairs(const std::string& run, std::string_view caller, EndedRuns::Ready ready) {
  std::shared_ptr<RunBoard> board = ready_ ? Known(run) : nullptr;
  if (board == nullptr || !board->ended()) return ready(Find(run));
  ended_.MarkUsed(run);
  if (board->complete()) return ready(std::move(board));
  {
    MutexLock lock(mutex_);
    const auto found = runs_.find(run);
    if (found != runs_.end() && found->second.board == board) found->second.loaded = true;
  }
  ended_.Load(board, caller, std::move(ready));
}

absl::StatusOr<std::string> Board::Resolve(const std::string& run) const {
  if (!run.empty()) return run;
  if (!ready_) return errors::StatusNotReady();
  std::vector<Entry> entries;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, entry] : runs_) entries.push_back(entry);
  }
  if (entries.empty()) return errors::RunNotFound("");
  // A run whose pairs are still being listed counts only if there is no other.
  std::ranges::sort(entries, std::ranges::greater(), &Entry::created);
  const auto shown = std::ranges::find_if(
      entries, [](const Entry& entry) { return entry.board->ended() || entry.board->complete(); });
  return (shown == entries.end() ? entries.front() : *shown).board->id();
}

absl::Status Board::HandleActivity(const v1::ResultKey& key,
                                   const std::shared_ptr<const Sender>& sender,
                                   const v1::Activity& activity) {
  if (activity.has_progress()) {
    RETURN_IF_ERROR(CheckProgress(activity.progress()));
  }
  if (!ready_) return errors::StatusNotReady();
  const auto run = Known(key.run());
  if (run == nullptr) return errors::RunNotFound(key.run());
  bool attends = false;
  const absl::Status took = run->HandleActivity(key, sender, activity, &attends);
  if (ReasonOf(took) == "PAIR_NOT_PLANNED" && !run->complete()) {
    return run->ended() ? absl::OkStatus() : errors::StatusNotReady();
  }
  if (!attends || !took.ok()) return took;
  Attend(key, sender);
  // The last change may precede Attend.
  if (!IsReturning(*sender)) run->SenderChanged(key.plugin(), key.node(), sender);
  return took;
}

void Board::Attend(const v1::ResultKey& key, const std::shared_ptr<const Sender>& sender) {
  sender_pairs_.Add(key, sender);
  nodes_.Heard(sender);
}

void Board::PresenceChanged(const std::shared_ptr<const Sender>& sender) {
  nodes_.Heard(sender);
  {
    MutexLock lock(early_mutex_);
    if (!ready_) early_[{sender->uri(), sender->node()}] = sender;
  }
  for (const v1::ResultKey& pair : sender_pairs_.Of(*sender)) {
    if (const auto run = Known(pair.run())) run->SenderChanged(pair.plugin(), pair.node(), sender);
  }
}

absl::Status Board::Report(const v1::ReportProgressRequest& report) {
  RETURN_IF_ERROR(CheckProgress(report));
  const auto known = Known(report.key().run());
  if (ready_ && known != nullptr && LacksPairs(*known)) return absl::OkStatus();  // too late
  ASSIGN_OR_RETURN(const auto run, Find(report.key().run()));
  return run->Report(report);
}

void Board::Tick() {
  if (!ready_) return;
  for (const auto& run : Runs()) run->Tick();
  ++ticks_;
  if (ticks_ % kTicksBetweenWakes == 0) {
    options_.hub->WakeAll();
    options_.verdicts->WakeAll();
  }
  if (ticks_ % kTicksBetweenPrunes == 0) Prune();
}

// Forgets the senders of runs that have ended.
void Board::Prune() {
  std::set<std::string> open;
  for (const auto& run : Runs()) {
    if (!run->ended()) open.insert(run->id());
  }
  sender_pairs_.KeepOnly(open);
  nodes_.Prune();
}

absl::Status Board::Get(RunBoard& run, const StatusQuery& query, std::string* bytes) const {
  if (!query.only_node.empty() && !run.Plans(query.only_plugin, query.only_node)) {
    return errors::RunNotFound(query.run);
  }
  v1::RunStatus status;
  AddSummary(run, &status);
  if (!query.only_plugin.empty() || !query.only_node.empty())
    RestrictToPlugin(query.only_plugin, &status);
  if (query.page_size > 0) {
    PairWriter pairs(v1::RunStatus::kPairsFieldNumber, bytes);
    ASSIGN_OR_RETURN(auto next, run.AddPairs(query, &pairs));
    status.set_next_page_token(std::move(next));
  }
  status.AppendToString(bytes);
  return absl::OkStatus();
}

void Board::AddSummary(RunBoard& run, v1::RunStatus* status) const {
  *status = *run.Summary();
  *status->mutable_feed_time() = ToTimestamp(absl::FromUnixMicros(feed_micros_));
}

absl::StatusOr<v1::ListNodesResponse> Board::ListNodes(const v1::ListNodesRequest& request) const {
  if (!ready_) return errors::StatusNotReady();
  return nodes_.List(request, Now());
}

absl::StatusOr<v1::Node> Board::GetNode(const std::string& node) const {
  if (!ready_) return errors::StatusNotReady();
  auto found = nodes_.Get(node, Now());
  if (!found) return errors::NodeNotFound(node);
  size_t bytes = 0;
  for (const auto& run : Runs()) {
    if (run->ended() || bytes >= kPairBytesOfMessage) continue;
    const int first = found->pairs_size();
    bytes += run->AddPairsOf(node, kPairsOfNode, found->mutable_pairs());
    for (int i = first; i < found->pairs_size(); ++i) found->mutable_pairs(i)->set_run(run->id());
  }
  return *std::move(found);
}

std::vector<std::pair<v1::ResultKey, v1::Progress>> Board::DrainNewProgress() {
  std::vector<std::pair<v1::ResultKey, v1::Progress>> all;
  for (const auto& run : Runs()) {
    auto taken = run->DrainNewProgress();
    std::move(taken.begin(), taken.end(), std::back_inserter(all));
  }
  return all;
}

absl::Status Board::Ready() const { return ready_ ? absl::OkStatus() : errors::StatusNotReady(); }

}  // namespace muster
