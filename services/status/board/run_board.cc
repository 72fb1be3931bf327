#include "services/status/board/run_board.h"

#include <algorithm>
#include <utility>

#include "services/common/base/random_id.h"
#include "services/common/base/strings.h"
#include "services/common/errors/runs.h"
#include "services/status/board/progress.h"

namespace muster {
namespace {

constexpr absl::Duration kClockWasSet = absl::Milliseconds(250);

void Count(v1::Outcome outcome, int64_t n, v1::ResultCounts* counts) {
  switch (outcome) {
    case v1::OUTCOME_PENDING:
      return counts->set_pending(counts->pending() + n);
    case v1::OUTCOME_GENUINE:
      return counts->set_genuine(counts->genuine() + n);
    case v1::OUTCOME_ERROR:
      return counts->set_errors(counts->errors() + n);
    case v1::OUTCOME_TIMED_OUT:
      return counts->set_timed_out(counts->timed_out() + n);
    default:
      return;
  }
}

bool SameFault(const v1::Fault* a, const v1::Activity& activity) {
  if (a == nullptr || !activity.has_fault()) return a == nullptr && !activity.has_fault();
  const v1::Fault& b = activity.fault();
  return a->check() == b.check() && a->address() == b.address() && a->message() == b.message();
}

}  // namespace

RunBoard::RunBoard(std::string id, const Surroundings& around)
    : id_(std::move(id)),
      epoch_(RandomHex(6)),
      around_(around),
      known_since_(around.clock->MonotonicNow()),
      created_at_(known_since_) {}

// The two clocks are read one after the other: what lies between would make each answer tell
// another time of the same thing, and a client could never see that nothing has changed. So the
// wall clock is followed only when it was set.
Moment RunBoard::Now() const {
  const absl::Time wall = around_.clock->Now();
  const absl::Duration monotonic = around_.clock->MonotonicNow();
  const absl::Duration off = wall - monotonic - wall_zero_;
  if (off > kClockWasSet || off < -kClockWasSet) wall_zero_ = wall - monotonic;
  return {wall_zero_ + monotonic, monotonic};
}

void RunBoard::SetRun(const v1::Run& run) {
  MutexLock lock(mutex_);
  run_ = run;
  for (v1::Plugin& plugin : *run_.mutable_plugins()) {
    plugin.clear_definition_yaml();
    PluginPairs& pairs = plugins_[plugin.name()];
    pairs.name = plugin.name();
    pairs.once = plugin.once();
  }
  const Moment now = Now();
  created_at_ = std::min(now.monotonic, now.monotonic - (now.wall - FromProto(run.create_time())));
  if (run_.state() != v1::RUN_STATE_PLANNED) WithdrawStartGraceExpired();
  if (IsEnded(run_.state())) WithdrawAllLost();
  ++version_;
  ++summary_version_;
  around_.changed(id_);
}

RunBoard::PairSet RunBoard::SetPair(const v1::FollowChangesResponse::PairChanged& change, bool live,
                                    absl::Time at) {
  MutexLock lock(mutex_);
  Pair* pair = Find(change.key().plugin(), change.key().node());
  PairSet set;
  set.added = pair == nullptr;
  if (set.added) {
    PluginPairs& plugin = plugins_[change.key().plugin()];
    plugin.name = change.key().plugin();
    pair = AddPair(plugin, change.key().node());
  }
  // After a snapshot an older change may come again.
  if (live && change.generation() < pair->generation) return set;
  if (!set.added && change.outcome() == pair->outcome && change.generation() == pair->generation) {
    return set;
  }
  const bool was_pending = pair->pending();
  Count(pair->outcome, -1, &pair->plugin->counts);
  Count(change.outcome(), 1, &pair->plugin->counts);
  pair->outcome = change.outcome();
  pair->generation = change.generation();
  pair->size = change.size();
  pair->error = change.error();
  const Moment now = Now();
  if (live) pair->updated = at;
  if (was_pending && !pair->pending()) {
    Finish(*pair, live ? now.monotonic - (now.wall - at) : -absl::InfiniteDuration());
    if (pair->work != nullptr) set.finished_for = pair->work->sender;
  } else if (!was_pending && pair->pending()) {
    Reopen(*pair);
  }
  Judge(*pair, now, live);
  Touch(*pair, true);
  return set;
}

Pair* RunBoard::Find(std::string_view plugin, std::string_view node) {
  const auto found = plugins_.find(plugin);
  if (found == plugins_.end()) return nullptr;
  const auto pair = found->second.by_node.find(ToAbsl(node));
  return pair == found->second.by_node.end() ? nullptr : pair->second;
}

// A pair that nothing is known of but that it is planned.
Pair* RunBoard::AddPair(PluginPairs& plugin, const std::string& node) {
  Pair& pair = plugin.pairs.emplace_back();
  ++pair_count_;
  pair.node = node;
  pair.plugin = &plugin;
  plugin.by_node.emplace(pair.node, &pair);
  // The feed tells them in order, nearly always.
  const auto place = plugin.sorted.empty() || plugin.sorted.back()->node < node
                         ? plugin.sorted.end()
                         : std::upper_bound(
                               plugin.sorted.begin(), plugin.sorted.end(), node,
                               [](const std::string& a, const Pair* b) { return a < b->node; });
  plugin.sorted.insert(place, &pair);
  plugin.counts.set_planned(plugin.counts.planned() + 1);
  Count(v1::OUTCOME_PENDING, 1, &plugin.counts);
  ++plugin.unheard;
  pair.reason = v1::REASON_NOT_STARTED;
  pair.reason_since = known_since_;
  ++plugin.reasons[pair.reason];
  pair.by_reason = by_reason_[pair.reason].insert(by_reason_[pair.reason].end(), &pair);
  return &pair;
}

// The pair has an outcome: nothing more is expected of it. `at` is monotonic; the infinite past if
// it is not known.
void RunBoard::Finish(Pair& pair, absl::Duration at) {
  PluginPairs& plugin = *pair.plugin;
  const absl::Duration began = pair.work != nullptr ? pair.work->began : created_at_;
  if (pair.work == nullptr) --plugin.unheard;
  if (pair.outcome != v1::OUTCOME_TIMED_OUT && at != -absl::InfiniteDuration()) {
    plugin.durations.Add(std::max(at - began, absl::ZeroDuration()));
  }
  came_ = came_ || pair.outcome == v1::OUTCOME_GENUINE;
  if (pair.work == nullptr) return;
  Work& work = *pair.work;
  if (work.in_moving) plugin.moving.erase(work.moving);
  work.in_moving = false;
  work.last_rate = work.motion.Rate(Now().monotonic).value_or(0);
  work.slow = false;
  WithdrawLost(pair);
}

// Only an aggregator that was set back to an older state takes an outcome back.
void RunBoard::Reopen(Pair& pair) {
  if (pair.work == nullptr) {
    ++pair.plugin->unheard;
  } else {
    pair.plugin->begun.push_back(&pair);
  }
}

void RunBoard::Delete() {
  MutexLock lock(mutex_);
  deleted_ = true;
  WithdrawAllLost();
  WithdrawStartGraceExpired();
  around_.changed(id_);
}

Work& RunBoard::Hear(Pair& pair) {
  const absl::Duration now = around_.clock->MonotonicNow();
  if (pair.work == nullptr) {
    pair.work = std::make_unique<Work>();
    pair.work->began = now;
    if (pair.pending()) {
      --pair.plugin->unheard;
      pair.plugin->begun.push_back(&pair);
    }
  }
  pair.work->told_at = now;
  return *pair.work;
}

absl::Status RunBoard::Took(const v1::ResultKey& key, const std::shared_ptr<const Sender>& sender,
                            const v1::Activity& activity, bool* attends) {
  MutexLock lock(mutex_);
  Pair* const pair = Find(key.plugin(), key.node());
  if (pair == nullptr) return errors::PairNotPlanned(key.run(), key.plugin(), key.node());
  const bool first = pair->work == nullptr;
  Work& work = Hear(*pair);
  *attends = work.sender != sender;
  work.sender = sender;
  work.evidence = sender->evidence();
  if (!pair->pending()) return absl::OkStatus();
  const bool same = !first && !*attends && !work.abandoned && work.message == activity.message() &&
                    (activity.phase() == v1::PHASE_UNSPECIFIED || activity.phase() == work.phase) &&
                    SameFault(work.fault.get(), activity);
  work.abandoned = false;
  if (activity.phase() != v1::PHASE_UNSPECIFIED) {
    work.phase = activity.phase();
  } else if (work.phase == v1::PHASE_UNSPECIFIED) {
    work.phase = v1::PHASE_WORKING;
  }
  work.message = activity.message();
  work.fault = activity.has_fault() ? std::make_unique<v1::Fault>(activity.fault()) : nullptr;
  // One who tells what stands in its way has not come; nor has one who may be about to tell it.
  came_ = came_ || (!activity.has_fault() && work.phase != v1::PHASE_CHECKING &&
                    work.phase != v1::PHASE_BLOCKED);
  const Moment now = Now();
  if (activity.has_progress()) Progressed(*pair, activity.progress(), now);
  if (same && !activity.has_progress()) return absl::OkStatus();
  Judge(*pair, now);
  Touch(*pair, first || Severity(pair->reason) > 0);
  return absl::OkStatus();
}

absl::Status RunBoard::Report(const v1::ReportProgressRequest& report) {
  const v1::ResultKey& key = report.key();
  MutexLock lock(mutex_);
  Pair* const pair = Find(key.plugin(), key.node());
  if (pair == nullptr) return errors::PairNotPlanned(key.run(), key.plugin(), key.node());
  Hear(*pair);
  came_ = true;
  const Moment now = Now();
  Progressed(*pair, report, now);
  Judge(*pair, now);
  Touch(*pair, Severity(pair->reason) > 0);
  return absl::OkStatus();
}

void RunBoard::Progressed(Pair& pair, const v1::ReportProgressRequest& report, const Moment& now) {
  Work& work = *pair.work;
  if (work.progress == nullptr) work.progress = std::make_unique<v1::Progress>();
  const v1::Progress before = *work.progress;
  ApplyProgress(report, now.wall, work.progress.get());
  const v1::Progress& after = *work.progress;
  pair.updated = now.wall;
  if (!pair.pending()) return;
  const bool moved = !work.motion.moved() || after.completed() != before.completed() ||
                     after.total() != before.total() || after.message() != before.message() ||
                     after.failures_size() != before.failures_size() ||
                     after.errors_size() != before.errors_size();
  if (!work.unsaved) new_progress_.push_back(&pair);
  work.unsaved = true;
  if (!moved) return;
  const auto step = work.motion.Moved(after.completed(), now.monotonic);
  if (step) pair.plugin->steps.Add(*step);
  if (work.in_moving) pair.plugin->moving.erase(work.moving);
  work.moving = pair.plugin->moving.insert(pair.plugin->moving.end(), &pair);
  work.in_moving = true;
}

void RunBoard::Recall(const v1::ResultKey& key, Memory memory) {
  MutexLock lock(mutex_);
  Pair* const pair = Find(key.plugin(), key.node());
  if (pair == nullptr || !pair->pending()) return;
  came_ = true;
  const Moment now = Now();
  if (pair->work == nullptr) {
    // Not a word of this life: how old it is the sender tells, or the progress.
    Work& work = Hear(*pair);
    work.told_at = -absl::InfiniteDuration();
  }
  Work& work = *pair->work;
  work.began = std::min(work.began, now.monotonic - (now.wall - memory.first));
  if (work.sender == nullptr) work.sender = std::move(memory.sender);
  if (work.progress == nullptr && memory.progress != nullptr) {
    work.progress = std::move(memory.progress);
    work.told_at =
        std::max(work.told_at, now.monotonic - (now.wall - FromProto(work.progress->time())));
  }
  Judge(*pair, now, /*news=*/false);
  Touch(*pair, true);
}

void RunBoard::SenderChanged(const std::string& plugin, const std::string& node,
                             const std::shared_ptr<const Sender>& sender) {
  MutexLock lock(mutex_);
  Pair* const pair = Find(plugin, node);
  if (pair == nullptr || pair->work == nullptr || pair->work->sender != sender) return;
  const Moment now = Now();
  Work& work = *pair->work;
  // The new process tells what it does with its first heartbeat; give or take the order.
  constexpr absl::Duration kJustTold = absl::Seconds(2);
  const Evidence seen = std::exchange(work.evidence, sender->evidence());
  if (work.evidence == Evidence::kRestarted && seen != work.evidence && !work.abandoned &&
      now.monotonic - work.told_at > kJustTold) {
    work.abandoned = true;
    work.abandoned_at = now.monotonic;
  }
  if (!pair->pending() || IsEnded(run_.state())) return;
  const v1::Reason before = pair->reason;
  Judge(*pair, now);
  Touch(*pair, Severity(pair->reason) > 0 || Severity(before) > 0);
  if (work.lost && !IsLost(FactsOf(*pair), OutlookNow().lost_after, now.monotonic)) {
    WithdrawLost(*pair);
  }
}

void RunBoard::Judge(Pair& pair, const Moment& now, bool news) {
  const v1::Reason reason = muster::Judge(FactsOf(pair), now.monotonic);
  if (reason == pair.reason) return;
  // Finished pairs are not counted by reason.
  const auto counts = [](v1::Reason r) {
    return r != v1::REASON_UNSPECIFIED && r != v1::REASON_TIMED_OUT;
  };
  PairList& from = by_reason_[pair.reason];
  PairList& to = by_reason_[reason];
  to.splice(to.end(), from, pair.by_reason);
  if (counts(pair.reason)) --pair.plugin->reasons[pair.reason];
  if (counts(reason)) ++pair.plugin->reasons[reason];
  pair.reason = reason;
  pair.reason_since = now.monotonic;
  pair.updated = pair.pending() ? now.wall : pair.updated;
  ++summary_version_;
  if (news) TellEvent(pair, now);
}

void RunBoard::Touch(Pair& pair, bool summary) {
  pair.version = ++version_;
  log_.push_back({version_, &pair});
  if (summary) ++summary_version_;
  if (log_.size() > 2 * pair_count_ + 1024) Compact();
  around_.changed(id_);
}

void RunBoard::Compact() {
  std::erase_if(log_, [](const LogEntry& entry) { return entry.pair->version != entry.version; });
}

void RunBoard::WithdrawLost(Pair& pair) {
  if (pair.work == nullptr || !pair.work->lost) return;
  pair.work->lost = false;
  around_.verdicts->WithdrawLost(KeyOf(pair));
}

void RunBoard::WithdrawAllLost() {
  for (const PairList& pairs : by_reason_) {
    for (Pair* const pair : pairs) WithdrawLost(*pair);
  }
}

void RunBoard::WithdrawStartGraceExpired() {
  if (std::exchange(start_grace_expired_, false)) around_.verdicts->WithdrawStartGraceExpired(id_);
}

void RunBoard::TellEvent(const Pair& pair, const Moment& now) {
  if (Severity(pair.reason) == 0 && pair.reason != v1::REASON_TIMED_OUT) return;
  v1::NodeEvent event;
  *event.mutable_time() = ToTimestamp(now.wall);
  event.set_reason(pair.reason);
  if (pair.work != nullptr && pair.work->sender != nullptr) {
    event.set_presence(pair.work->sender->presence());
  }
  event.set_run(id_);
  event.set_plugin(pair.plugin->name);
  event.set_detail(Detail(pair.reason, FactsOf(pair), now));
  around_.event(pair.node, event);
}

std::vector<std::pair<v1::ResultKey, v1::Progress>> RunBoard::TakeNewProgress() {
  MutexLock lock(mutex_);
  std::vector<std::pair<v1::ResultKey, v1::Progress>> taken;
  for (Pair* const pair : std::exchange(new_progress_, {})) {
    pair->work->unsaved = false;
    if (pair->pending()) taken.emplace_back(KeyOf(*pair), *pair->work->progress);
  }
  return taken;
}

v1::ResultKey RunBoard::KeyOf(const Pair& pair) const {
  v1::ResultKey key;
  key.set_run(id_);
  key.set_plugin(pair.plugin->name);
  key.set_node(pair.node);
  return key;
}

}  // namespace muster
