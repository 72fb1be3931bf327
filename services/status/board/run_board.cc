#include "services/status/board/run_board.h"

#include <algorithm>
#include <utility>

#include "services/common/base/random_id.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/runs.h"
#include "services/status/board/activity.h"
#include "services/status/board/relay_doubt.h"
#include "services/status/board/run_summary.h"
#include "services/status/board/sender_precedence.h"
#include "services/status/board/work_texts.h"
#include "services/status/heartbeats/relay_table.h"

namespace muster {
namespace {

constexpr int kLogPart = 256;  // log entries that are read with the lock held, below a millisecond

// For larger pages, which programs read, texts that are the same for each pair are left out.
constexpr int kPageWithTexts = 1000;

constexpr int kTicksBetweenPaces = 10;  // a comparison of rates reads each pair with progress

}  // namespace

RunBoard::RunBoard(std::string id, const Context& context)
    : id_(std::move(id)),
      epoch_(RandomHex(6)),
      context_(context),
      clock_(*context.clock),
      texts_(kTextBytesOfRun, *context.texts),
      lost_(id_, *context.verdicts),
      start_(id_, context.clock->MonotonicNow(), *context.verdicts),
      created_at_(context.clock->MonotonicNow()) {}

void RunBoard::SetRun(const v1::Run& run) {
  MutexLock lock(mutex_);
  const bool was_ended = IsEnded(run_.state());
  run_ = run;
  for (v1::Plugin& plugin : *run_.mutable_plugins()) {
    plugin.clear_definition_yaml();
    pairs_.Plugin(plugin.name()).once = plugin.once();
  }
  const Moment now = clock_.Now();
  created_at_ = std::min(now.monotonic, now.monotonic - (now.wall - FromProto(run.create_time())));
  start_.SetRun(run_.state() == v1::RUN_STATE_PLANNED, FromProto(run_.start_grace()));
  UpdateLostAfter(now.monotonic);
  if (IsEnded(run_.state()) != was_ended) JudgePending(now);
  log_.Skip();
  summary_.Invalidate();
  context_.changed(id_);
}

void RunBoard::JudgePending(const Moment& now) {
  for (auto& [name, plugin] : pairs_.plugins()) {
    for (Pair& pair : plugin.pairs) {
      if (pair.pending() && Judge(pair, now)) Touch(pair, true);
    }
  }
}

void RunBoard::UpdateLostAfter(absl::Duration now) {
  const bool over = deleted_ || IsEnded(run_.state());
  if (!lost_.SetLostAfter(over ? absl::InfiniteDuration() : OutlookNow().lost_after)) return;
  for (auto& [name, plugin] : pairs_.plugins()) {
    for (Pair& pair : plugin.pairs) lost_.Update(pair, now);
  }
}

RunBoard::PairSet RunBoard::SetPair(const std::string& plugin, const PairChanged& change, bool live,
                                    absl::Time at) {
  MutexLock lock(mutex_);
  Pair* pair = pairs_.Find(plugin, change.node());
  PairSet set;
  set.added = pair == nullptr;
  if (set.added) pair = &pairs_.Add(plugin, change.node(), created_at_);
  // After a snapshot an older change may come again.
  if (live && change.generation() < pair->generation) return set;
  if (!set.added && change.outcome() == pair->outcome && change.generation() == pair->generation) {
    return set;
  }
  const bool was_pending = pair->pending();
  pairs_.SetOutcome(*pair, change);
  const Moment now = clock_.Now();
  pair->updated = at;
  if (was_pending && !pair->pending()) {
    Finish(*pair, live ? now.monotonic - (now.wall - at) : -absl::InfiniteDuration(),
           now.monotonic);
    if (pair->work != nullptr && pair->outcome != v1::OUTCOME_TIMED_OUT) {
      set.finished_for = pair->work->sender;
    }
  }
  Judge(*pair, now, live);
  Touch(*pair, true);
  return set;
}

void RunBoard::Finish(Pair& pair, absl::Duration at, absl::Duration now) {
  PluginPairs& plugin = *pair.plugin;
  const absl::Duration began = pair.work != nullptr ? pair.work->began : created_at_;
  if (pair.outcome != v1::OUTCOME_TIMED_OUT && at != -absl::InfiniteDuration()) {
    plugin.durations.Add(std::max(at - began, absl::ZeroDuration()));
  }
  if (pair.outcome == v1::OUTCOME_GENUINE) MarkReported();
  plugin.pace.Finish(pair, now);
}

void RunBoard::MarkReported() {
  if (start_.MarkReported()) summary_.Invalidate();
}

void RunBoard::Delete() {
  MutexLock lock(mutex_);
  deleted_ = true;
  UpdateLostAfter(clock_.Now().monotonic);
  start_.Withdraw();
  context_.changed(id_);
}

Work& RunBoard::Hear(Pair& pair) {
  const absl::Duration now = context_.clock->MonotonicNow();
  Work& work = pairs_.Hear(pair, now);
  work.received_at = now;
  return work;
}

absl::Status RunBoard::HandleActivity(const v1::ResultKey& key,
                                      const std::shared_ptr<const Sender>& sender,
                                      const v1::Activity& activity, bool* attends) {
  MutexLock lock(mutex_);
  Pair* const pair = pairs_.Find(key.plugin(), key.node());
  if (pair == nullptr) return errors::PairNotPlanned(key.run(), key.plugin(), key.node());
  const bool first = pair->work == nullptr;
  if (!first && YieldsTo(pair->work->sender.get(), *sender)) return absl::OkStatus();
  Work& work = Hear(*pair);
  *attends = work.sender != sender;
  work.sender = sender;
  work.restarts = sender->restarts();
  if (!pair->pending()) return absl::OkStatus();
  bool changed = ApplyActivity(activity, work) || first || *attends;
  if (CanWork(work)) MarkReported();
  const Moment now = clock_.Now();
  if (activity.has_progress()) HandleReport(*pair, activity.progress(), now);
  if (FitTexts(*pair, texts_)) changed = true;
  if (!changed && !activity.has_progress()) return absl::OkStatus();
  if (!IsReturning(*sender)) Judge(*pair, now);
  Touch(*pair, first || Severity(pair->reason) > 0);
  return absl::OkStatus();
}

absl::Status RunBoard::Report(const v1::ReportProgressRequest& report) {
  const v1::ResultKey& key = report.key();
  MutexLock lock(mutex_);
  Pair* const pair = pairs_.Find(key.plugin(), key.node());
  if (pair == nullptr) return errors::PairNotPlanned(key.run(), key.plugin(), key.node());
  Hear(*pair);
  MarkReported();
  const Moment now = clock_.Now();
  HandleReport(*pair, report, now);
  FitTexts(*pair, texts_);
  Judge(*pair, now);
  Touch(*pair, Severity(pair->reason) > 0);
  return absl::OkStatus();
}

void RunBoard::HandleReport(Pair& pair, const v1::ReportProgressRequest& report,
                            const Moment& now) {
  Work& work = *pair.work;
  const bool moved = ApplyReport(report, now.wall, work);
  // A late report does not change the time of an outcome.
  if (!pair.pending()) return;
  pair.updated = now.wall;
  new_progress_.Add(pair);
  if (moved) pair.plugin->pace.Moved(pair, work.progress->completed(), now.monotonic);
}

void RunBoard::Restore(const v1::ResultKey& key, Memory memory) {
  MutexLock lock(mutex_);
  Pair* const pair = pairs_.Find(key.plugin(), key.node());
  if (pair == nullptr || !pair->pending()) return;
  MarkReported();
  const Moment now = clock_.Now();
  const bool first = pair->work == nullptr;
  Work& work = pairs_.Hear(*pair, now.monotonic);
  // Nothing was received in this life of the service: the sender or the progress has the time.
  if (first) work.received_at = -absl::InfiniteDuration();
  work.began = std::min(work.began, now.monotonic - (now.wall - memory.first));
  if (work.sender == nullptr && memory.sender != nullptr) {
    work.sender = std::move(memory.sender);
    work.restarts = work.sender->restarts();  // a process that restarted earlier is no new one
  }
  if (work.progress == nullptr && memory.progress != nullptr) {
    work.progress = std::move(memory.progress);
    const absl::Time at = FromProto(work.progress->time());
    work.received_at = std::max(work.received_at, now.monotonic - (now.wall - at));
    pair->updated = std::max(pair->updated, at);
    FitTexts(*pair, texts_);
  }
  Judge(*pair, now, /*live=*/false);
  Touch(*pair, true);
}

void RunBoard::SenderChanged(const std::string& plugin, const std::string& node,
                             const std::shared_ptr<const Sender>& sender) {
  MutexLock lock(mutex_);
  Pair* const pair = pairs_.Find(plugin, node);
  if (pair == nullptr || pair->work == nullptr || pair->work->sender != sender) return;
  const Moment now = clock_.Now();
  Work& work = *pair->work;
  // The first heartbeat of the new process, which may arrive earlier or later, names its pairs.
  constexpr absl::Duration kJustSent = absl::Seconds(2);
  const uint32_t seen = std::exchange(work.restarts, sender->restarts());
  if (work.restarts != seen && !work.abandoned && now.monotonic - work.received_at > kJustSent) {
    work.abandoned = true;
    work.abandoned_at = now.monotonic;
  }
  if (!pair->pending() || IsEnded(run_.state())) return;
  // During the silence no progress could arrive.
  if (sender->presence() == v1::PRESENCE_ONLINE &&
      sender->presence_since() > work.motion.moved_at()) {
    pair->plugin->pace.Resume(*pair, now.monotonic);
  }
  const v1::Reason before = pair->reason;
  Judge(*pair, now);
  Touch(*pair, Severity(pair->reason) > 0 || Severity(before) > 0);
}

bool RunBoard::Judge(Pair& pair, const Moment& now, bool live) {
  PairFacts facts = FactsOf(pair);
  facts.run_ended = IsEnded(run_.state());
  const v1::Reason reason = muster::Judge(facts, now.monotonic);
  // It is not known when a state began that a snapshot or a restart has brought.
  absl::Time at = live ? now.wall : absl::InfinitePast();
  if (reason == v1::REASON_TIMED_OUT) at = pair.updated;
  if (reason == v1::REASON_RUN_ENDED && run_.has_end_time()) at = FromProto(run_.end_time());
  const bool changed = pairs_.SetReason(pair, reason, now.monotonic - (now.wall - at));
  lost_.Update(pair, now.monotonic);
  if (!changed) return false;
  if (pair.pending() && at != absl::InfinitePast()) pair.updated = at;
  summary_.Invalidate();
  if (live && (Severity(pair.reason) > 0 || pair.reason == v1::REASON_TIMED_OUT)) {
    context_.event(pair.node, MakeNodeEvent(id_, pair, now));
  }
  return true;
}

void RunBoard::Touch(Pair& pair, bool summary) {
  log_.Append(pair, pairs_.size());
  if (summary) summary_.Invalidate();
  context_.changed(id_);
}

void RunBoard::Tick() {
  MutexLock lock(mutex_);
  if (deleted_ || IsEnded(run_.state())) return;
  const Moment now = clock_.Now();
  ++ticks_;
  TickPace(now);
  lost_.Tick(now);
  TickStart(now);
}

void RunBoard::TickPace(const Moment& now) {
  const auto judge = [&](Pair& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (Judge(pair, now)) Touch(pair, true);
  };
  for (auto& [name, plugin] : pairs_.plugins()) {
    if (ticks_ % kTicksBetweenPaces == 0) {
      for (Pair* const pair : plugin.pace.Compare(plugin.pairs, now.monotonic)) judge(*pair);
    }
    while (Pair* const pair = plugin.pace.PopStuck(now.monotonic)) judge(*pair);
  }
}

void RunBoard::TickStart(const Moment& now) {
  if (!start_.IsOver(now.monotonic, context_.ready_since())) return;
  if (DoubtNow().empty() && !AnySenderWaits(pairs_)) start_.Expire(WhyNotReported(pairs_));
}

std::string RunBoard::DoubtNow() const {
  if (IsEnded(run_.state())) return "";
  std::string doubt = context_.doubt();
  if (!doubt.empty()) return doubt;
  const RelayState* const relay = FindDoubted(context_.lost_relays(), pairs_);
  return relay == nullptr ? "" : WhyUnknown(*relay, context_.clock->MonotonicNow());
}

Outlook RunBoard::OutlookNow() const {
  Outlook outlook;
  outlook.ended = IsEnded(run_.state());
  if (run_.has_deadline()) outlook.deadline = FromProto(run_.deadline());
  if (run_.has_lost_after()) outlook.lost_after = FromProto(run_.lost_after());
  outlook.fail_fast = run_.fail_fast();
  outlook.reported = start_.reported();
  if (const auto report_by = start_.ReportBy(context_.ready_since())) {
    const absl::Time start_by = clock_.Now().WallOf(*report_by);
    if (start_by < outlook.deadline) outlook.start_by = start_by;
  }
  return outlook;
}

std::shared_ptr<const v1::RunStatus> RunBoard::Summary() {
  MutexLock lock(mutex_);
  const Moment now = clock_.Now();
  return summary_.Get(now.monotonic, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    v1::RunStatus status = MakeRunSummary(run_, pairs_, OutlookNow(), created_at_, now);
    status.set_run(id_);
    status.set_doubt(DoubtNow());
    return status;
  });
}

absl::StatusOr<std::string> RunBoard::AddPairs(const StatusQuery& query, PairWriter* pairs) {
  ASSIGN_OR_RETURN(auto position, ParsePageToken(query.page_token));
  for (;;) {
    MutexLock lock(mutex_);
    const PairView view(clock_.Now(), OutlookNow(), query.page_size > kPageWithTexts);
    const PagePart part = AddPagePart(pairs_, query, view, &position, pairs);
    if (part == PagePart::kPageFull) return ToPageToken(position);
    if (part == PagePart::kEnd) return "";
  }
}

bool RunBoard::Plans(const std::string& plugin, const std::string& node) {
  MutexLock lock(mutex_);
  return plugin.empty() ? pairs_.PlansNode(node) : pairs_.Find(plugin, node) != nullptr;
}

bool RunBoard::IsOpen(const std::string& plugin, const std::string& node) {
  MutexLock lock(mutex_);
  const Pair* const pair = pairs_.Find(plugin, node);
  return pair != nullptr && pair->open() && !IsEnded(run_.state());
}

std::vector<std::string> RunBoard::PlannedNodes() const {
  MutexLock lock(mutex_);
  return pairs_.Nodes();
}

size_t RunBoard::AddPairsOf(const std::string& node, int limit,
                            google::protobuf::RepeatedPtrField<v1::PairStatus>* out) {
  size_t bytes = 0;
  MutexLock lock(mutex_);
  const PairView view(clock_.Now(), OutlookNow(), /*brief=*/false);
  for (const auto& [name, plugin] : pairs_.plugins()) {
    const Pair* const pair = pairs_.Find(name, node);
    if (pair != nullptr && out->size() < limit) bytes += FillPair(*pair, view, out->Add());
  }
  return bytes;
}

uint64_t RunBoard::AddChanges(uint64_t after, uint64_t until, int limit, PairWriter* pairs) {
  bool full = false;
  while (!full && after != until) {
    MutexLock lock(mutex_);
    const PairView view(clock_.Now(), OutlookNow(), /*brief=*/true);
    after = log_.Visit(after, until, kLogPart, [&](const Pair& pair) {
      full = pairs->count() == limit || pairs->bytes() >= kPairBytesOfMessage;
      if (!full) pairs->Add(pair, view);
      return !full;
    });
  }
  return after;
}

WatchPosition RunBoard::Newest() const {
  MutexLock lock(mutex_);
  return {log_.version(), summary_.version()};
}

RunBoard::Tally RunBoard::MakeTally() const {
  MutexLock lock(mutex_);
  Tally tally;
  tally.state = run_.state();
  if (IsEnded(run_.state())) return tally;
  for (int i = 0; i < v1::Reason_ARRAYSIZE; ++i) {
    tally.unfinished[static_cast<size_t>(i)] =
        pairs_.with_reason(static_cast<v1::Reason>(i)).size();
  }
  return tally;
}

bool RunBoard::complete() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(pairs_.size()) >= run_.counts().planned();
}

std::vector<std::pair<v1::ResultKey, v1::Progress>> RunBoard::DrainNewProgress() {
  MutexLock lock(mutex_);
  return new_progress_.Drain(id_);
}

}  // namespace muster
