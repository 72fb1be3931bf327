#include "services/relay/jobs/job_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// An answer takes its way through the tree; nodes are given so long past every limit.
constexpr absl::Duration kAnswerGrace = absl::Seconds(10);

}  // namespace

JobState::JobState(Plan plan) : plan_(std::move(plan)) {
  for (const std::string& node : plan_.targets) targets_[node];
  plan_.targets.clear();
  open_ = targets_.size();
}

void JobState::Move(Target& target, Stage stage) {
  const auto busy = [](Stage s) { return s == Stage::kGiven || s == Stage::kStarted; };
  busy_ += static_cast<size_t>(busy(stage)) - static_cast<size_t>(busy(target.stage));
  running_ += static_cast<int64_t>(stage == Stage::kStarted) -
              static_cast<int64_t>(target.stage == Stage::kStarted);
  open_ -= static_cast<size_t>(stage == Stage::kFinal) -
           static_cast<size_t>(target.stage == Stage::kFinal);
  target.stage = stage;
}

void JobState::Count(const v1::JobRecord::Final& final, int64_t by) {
  outcomes_[final.outcome()] += by;
  if (final.outcome() == v1::JOB_OUTCOME_EXITED && final.exit_code() == 0 && final.signal() == 0) {
    succeeded_ += by;
  }
}

// What a record of the log means for its target.
void JobState::Apply(Target& target, const v1::JobRecord& record) {
  if (record.sequence() > 0) target.sequence = record.sequence();
  switch (record.record_case()) {
    case v1::JobRecord::kStarted:
      if (target.stage != Stage::kFinal) Move(target, Stage::kStarted);
      break;
    case v1::JobRecord::kOutput:
      kept_ += static_cast<int64_t>(record.output().data().size());
      break;
    case v1::JobRecord::kCut:
      cut_ += record.cut().bytes();
      break;
    case v1::JobRecord::kFinal: {
      if (const auto ours = ours_.find(record.node()); ours != ours_.end()) {
        Count(ours->second, -1);
        ours_.erase(ours);
      }
      Move(target, Stage::kFinal);
      target.final_is_ours = record.sequence() == 0;
      if (target.final_is_ours) ours_[record.node()] = record.final();
      Count(record.final(), 1);
      break;
    }
    default:
      break;
  }
}

void JobState::Replay(const v1::JobRecord& record) {
  const auto it = targets_.find(record.node());
  if (it == targets_.end()) return;
  Apply(it->second, record);
  if (record.record_case() == v1::JobRecord::kCut && kept_ >= plan_.max_output) {
    it->second.marked = true;
  }
}

std::vector<v1::JobRecord> JobState::Take(v1::JobRecord record) {
  std::vector<v1::JobRecord> taken;
  const auto it = targets_.find(record.node());
  if (it == targets_.end()) return taken;
  Target& target = it->second;
  // One that is missing before it will be sent again, with this one.
  if (record.sequence() != target.sequence + 1) return taken;
  if (target.stage == Stage::kFinal && !target.final_is_ours) return taken;
  if (record.has_output() &&
      kept_ + static_cast<int64_t>(record.output().data().size()) > plan_.max_output) {
    const auto bytes = static_cast<int64_t>(record.output().data().size());
    if (target.marked) {
      target.cut += bytes;
      target.sequence = record.sequence();
      return taken;
    }
    target.marked = true;
    record.mutable_cut()->set_bytes(bytes);
  }
  if (record.has_final() && target.cut > 0) {
    v1::JobRecord rest = Ours(record.node(), absl::UnixEpoch());
    *rest.mutable_time() = record.time();
    rest.mutable_cut()->set_bytes(std::exchange(target.cut, 0));
    Apply(target, rest);
    taken.push_back(std::move(rest));
  }
  Apply(target, record);
  taken.push_back(std::move(record));
  return taken;
}

int64_t JobState::Reached(std::string_view node) const {
  const auto it = targets_.find(node);
  return it == targets_.end() ? 0 : it->second.sequence;
}

std::vector<std::string> JobState::ToGive(const IsAttached& attached) {
  std::vector<std::string> nodes;
  if (cancelled_) return nodes;
  const size_t limit = plan_.parallel == 0 ? targets_.size() : static_cast<size_t>(plan_.parallel);
  for (auto& [node, target] : targets_) {
    if (busy_ >= limit) break;
    if (target.stage != Stage::kWaiting) continue;
    if (plan_.parallel != 0 && !attached(node)) continue;
    Move(target, Stage::kGiven);
    nodes.push_back(node);
  }
  return nodes;
}

v1::JobRecord JobState::Ours(std::string_view node, absl::Time now) const {
  v1::JobRecord record;
  record.set_job(plan_.job.job());
  record.set_node(std::string(node));
  ToProto(now, record.mutable_time());
  return record;
}

v1::JobRecord JobState::FinalOf(std::string_view node, v1::JobOutcome outcome,
                                std::string_view detail, absl::Time now) const {
  v1::JobRecord record = Ours(node, now);
  record.mutable_final()->set_outcome(outcome);
  record.mutable_final()->set_detail(std::string(detail));
  return record;
}

std::vector<v1::JobRecord> JobState::Unknown(absl::Time now, const IsAttached& known) {
  std::vector<v1::JobRecord> made;
  for (auto& [node, target] : targets_) {
    if (known(node)) continue;
    made.push_back(FinalOf(node, v1::JOB_OUTCOME_UNKNOWN,
                           "no node of this name is attached, or was within the last week", now));
    Apply(target, made.back());
  }
  return made;
}

std::vector<v1::JobRecord> JobState::Tick(absl::Time now, const IsAttached& attached) {
  std::vector<v1::JobRecord> made;
  if (now < plan_.wait_until) return made;
  const bool none_begins = now > plan_.begin_until + kAnswerGrace;
  const bool none_runs = now > plan_.begin_until + plan_.time_limit + kAnswerGrace;
  for (auto& [node, target] : targets_) {
    v1::JobRecord record;
    if (target.stage == Stage::kStarted) {
      if (!none_runs) continue;
      record = FinalOf(node, v1::JOB_OUTCOME_TIMED_OUT,
                       "it began, and its end was not heard of in time", now);
    } else if (target.stage == Stage::kFinal) {
      continue;
    } else if (!attached(node)) {
      record = FinalOf(node, v1::JOB_OUTCOME_UNREACHABLE,
                       "it was not attached while the command waited for it", now);
    } else if (none_begins && target.stage == Stage::kGiven) {
      record = FinalOf(node, v1::JOB_OUTCOME_TIMED_OUT, "it did not answer in time", now);
    } else if (now > plan_.begin_until && target.stage == Stage::kWaiting) {
      record = FinalOf(node, v1::JOB_OUTCOME_EXPIRED,
                       "its turn had not come when the command's time to begin was over", now);
    } else {
      continue;
    }
    Apply(target, record);
    made.push_back(std::move(record));
  }
  return made;
}

std::vector<v1::JobRecord> JobState::Cancel(absl::Time now, const IsAttached& attached) {
  std::vector<v1::JobRecord> made;
  cancelled_ = true;
  for (auto& [node, target] : targets_) {
    const bool untold =
        target.stage == Stage::kWaiting || (target.stage == Stage::kGiven && !attached(node));
    if (!untold) continue;
    made.push_back(FinalOf(node, v1::JOB_OUTCOME_CANCELLED, "it had not begun", now));
    Apply(target, made.back());
  }
  return made;
}

std::vector<v1::JobRecord> JobState::Branch(
    const std::string& relay, bool lost, absl::Time now,
    const std::function<bool(std::string_view node)>& below) {
  int64_t waiting = 0;
  for (const auto& [node, target] : targets_) {
    if (target.stage != Stage::kFinal && below(node)) ++waiting;
  }
  if (waiting == 0) return {};
  v1::JobRecord record = Ours("", now);
  record.mutable_branch()->set_relay(relay);
  record.mutable_branch()->set_lost(lost);
  record.mutable_branch()->set_waiting(waiting);
  record.mutable_branch()->set_detail(lost ? absl::StrCat("relay ", relay,
                                                          " is not attached any more; ", waiting,
                                                          " nodes below it have not finished")
                                           : absl::StrCat("relay ", relay, " is attached again"));
  return {record};
}

std::vector<std::string> JobState::Open() const {
  std::vector<std::string> nodes;
  for (const auto& [node, target] : targets_) {
    if (target.stage != Stage::kFinal) nodes.push_back(node);
  }
  return nodes;
}

void JobState::SetEnd(absl::Time end) { ToProto(end, plan_.job.mutable_end_time()); }

v1::Job JobState::Describe() const {
  v1::Job job = plan_.job;
  job.set_state(open_ > 0    ? v1::JOB_STATE_RUNNING
                : cancelled_ ? v1::JOB_STATE_CANCELLED
                             : v1::JOB_STATE_ENDED);
  job.set_targets(static_cast<int64_t>(targets_.size()));
  job.set_running(running_);
  for (const auto& [outcome, count] : outcomes_) {
    if (count == 0) continue;
    v1::JobOutcomeCount& entry = *job.add_outcomes();
    entry.set_outcome(outcome);
    entry.set_count(count);
  }
  job.set_succeeded(succeeded_);
  job.set_output_bytes(kept_);
  job.set_cut_bytes(cut_);
  return job;
}

}  // namespace muster
