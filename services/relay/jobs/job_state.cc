#include "services/relay/jobs/job_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// An answer takes its way through the tree; nodes are given so long past every limit.
constexpr absl::Duration kAnswerGrace = absl::Seconds(10);

// A node sends at most 64 KiB or 256 records that are not acknowledged, in records of at most
// 32 KiB: what it waits for must be covered by a Cut record before it stops.
constexpr int64_t kCutBytes = int64_t{32} << 10;
constexpr int64_t kCutRecords = 192;

// Bytes of the log.
constexpr int64_t kFrame = 32;                          // around a record
constexpr int64_t kMaxRoom = int64_t{64} << 10;         // of a target's records beside output
constexpr int64_t kCutRoom = 512;                       // of one Cut record
constexpr int64_t kOutputRoom = int64_t{256} << 10;     // beside twice the output
constexpr int64_t kBranchRoom = int64_t{1} << 20;       // of branches
constexpr int64_t kFinalRoom = 2 * (int64_t{6} << 10);  // ours, and the one that replaces it

// Sums of what nodes report end here.
constexpr int64_t kMaxCount = int64_t{1} << 60;

int64_t SizeOf(const v1::JobRecord& record) {
  return static_cast<int64_t>(record.ByteSizeLong()) + kFrame;
}

int64_t BytesOf(const v1::JobRecord& record) {
  return static_cast<int64_t>(record.output().data().size());
}

}  // namespace

int64_t JobState::MaxLogSize(const Plan& plan) {
  return 2 * plan.max_output + kOutputRoom + kBranchRoom + (int64_t{1} << 20) +
         static_cast<int64_t>(plan.targets.size()) * (kMaxRoom + kFinalRoom + (int64_t{1} << 10));
}

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
  if (record.sequence() > 0) target.sequence = target.stored = record.sequence();
  switch (record.record_case()) {
    case v1::JobRecord::kStarted:
      if (target.stage != Stage::kFinal) Move(target, Stage::kStarted);
      break;
    case v1::JobRecord::kOutput:
      kept_ += BytesOf(record);
      output_room_ += SizeOf(record);
      return;
    case v1::JobRecord::kCut:
      cut_ = std::min(kMaxCount, cut_ + record.cut().bytes());
      target.cutting = true;
      if (record.sequence() == 0) target.overrun = true;
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
      return;
    }
    default:
      break;
  }
  target.room += SizeOf(record);
}

void JobState::Replay(const v1::JobRecord& record) {
  if (record.has_branch()) branch_room_ += SizeOf(record);
  const auto it = targets_.find(record.node());
  if (it != targets_.end()) Apply(it->second, record);
}

bool JobState::Fits(const v1::JobRecord& record) const {
  return kept_ + BytesOf(record) <= plan_.max_output &&
         output_room_ + SizeOf(record) <= 2 * plan_.max_output + kOutputRoom;
}

// Adds a record that stands for what was left out since the last.
void JobState::AddCut(std::string_view node, Target& target,
                      const google::protobuf::Timestamp& time, std::vector<v1::JobRecord>* taken) {
  if (target.room > kMaxRoom - kCutRoom) target.overrun = true;
  v1::JobRecord record = Ours(node, absl::UnixEpoch());
  *record.mutable_time() = time;
  record.mutable_cut()->set_bytes(std::exchange(target.cut, 0));
  record.set_sequence(target.overrun ? 0 : target.sequence);
  Apply(target, record);
  taken->push_back(std::move(record));
}

std::vector<v1::JobRecord> JobState::Take(v1::JobRecord record) {
  std::vector<v1::JobRecord> taken;
  const auto it = targets_.find(record.node());
  if (it == targets_.end()) return taken;
  Target& target = it->second;
  if (target.stage == Stage::kFinal && !target.final_is_ours) return taken;
  if (target.overrun) return TakeOfOverrun(target, std::move(record));
  // One that is missing before it will be sent again, with this one.
  if (record.sequence() != target.sequence + 1) return taken;
  if (!record.has_output() && !record.has_final() && target.room + SizeOf(record) > kMaxRoom) {
    target.overrun = true;
    target.sequence = record.sequence();
    AddCut(record.node(), target, record.time(), &taken);
    return taken;
  }
  if (record.has_output() && !Fits(record)) {
    target.cut += BytesOf(record);
    target.sequence = record.sequence();
    const bool due = target.cut >= kCutBytes || target.sequence - target.stored >= kCutRecords;
    if (due || !target.cutting) AddCut(record.node(), target, record.time(), &taken);
    return taken;
  }
  if (target.sequence > target.stored) AddCut(record.node(), target, record.time(), &taken);
  Apply(target, record);
  taken.push_back(std::move(record));
  return taken;
}

std::vector<v1::JobRecord> JobState::TakeOfOverrun(Target& target, v1::JobRecord record) {
  std::vector<v1::JobRecord> taken;
  if (record.sequence() <= target.sequence) return taken;
  target.sequence = record.sequence();
  target.cut = std::min(kMaxCount, target.cut + BytesOf(record));
  if (!record.has_final()) return taken;
  if (target.cut > 0) AddCut(record.node(), target, record.time(), &taken);
  Apply(target, record);
  taken.push_back(std::move(record));
  return taken;
}

int64_t JobState::Reached(std::string_view node) const {
  const auto it = targets_.find(node);
  if (it == targets_.end()) return 0;
  return it->second.overrun ? it->second.sequence : it->second.stored;
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
  if (waiting == 0 || branch_room_ > kBranchRoom) return {};
  v1::JobRecord record = Ours("", now);
  record.mutable_branch()->set_relay(relay);
  record.mutable_branch()->set_lost(lost);
  record.mutable_branch()->set_waiting(waiting);
  record.mutable_branch()->set_detail(lost ? absl::StrCat("relay ", relay,
                                                          " is not attached any more; ", waiting,
                                                          " nodes below it have not finished")
                                           : absl::StrCat("relay ", relay, " is attached again"));
  branch_room_ += SizeOf(record);
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
