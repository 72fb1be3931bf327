#include "services/relay/jobs/job_state.h"

#include <algorithm>
#include <utility>

#include "services/common/rpc/proto_time.h"
#include "services/relay/jobs/record_size.h"

namespace muster {
namespace {

constexpr auto kAnswerGrace = RunDeadline::kAnswerGrace;
constexpr absl::Duration kAttachAfterRestart = absl::Seconds(70);  // AttachClientOptions: each 60 s
// A node may wait for an ack after 64 KiB or 256 records, in records of at most 32 KiB: a Cut
// record must cover them before that.
constexpr int64_t kCutBytes = int64_t{32} << 10;
constexpr int64_t kCutRecords = 192;

// Limits in bytes of the log.
constexpr int64_t kMaxRoom = int64_t{64} << 10;         // a target's records beside output
constexpr int64_t kCutRoom = 512;                       // one Cut record
constexpr int64_t kOutputRoom = int64_t{256} << 10;     // in addition to twice the output
constexpr int64_t kFinalRoom = 2 * (int64_t{6} << 10);  // our final record and its replacement
constexpr int64_t kMaxCount = int64_t{1} << 60;         // sums of reported numbers

}  // namespace

int64_t JobState::MaxLogSize(const Plan& plan) {
  return 2 * plan.max_output + kOutputRoom + BranchRecords::kMaxBytes + (int64_t{1} << 20) +
         static_cast<int64_t>(plan.targets.size()) * (kMaxRoom + kFinalRoom + (int64_t{1} << 10));
}

JobState::JobState(Plan plan) : plan_(std::move(plan)), branches_(plan_.job.job()) {
  for (const std::string& node : plan_.targets) targets_[node].wait_until = plan_.wait_until;
  plan_.targets.clear();
  open_ = targets_.size();
  latest_end_ = LatestEnd({}, {});
}

void JobState::Move(Target& target, Stage stage) {
  const auto busy = [](Stage s) { return s == Stage::kReleased || s == Stage::kStarted; };
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

// Applies a record of the log to its target.
void JobState::Apply(Target& target, const v1::JobRecord& record) {
  if (record.sequence() > 0) target.sequence = target.stored = record.sequence();
  switch (record.record_case()) {
    case v1::JobRecord::kStarted:
      if (target.stage != Stage::kFinal) Move(target, Stage::kStarted);
      break;
    case v1::JobRecord::kOutput:
      kept_ += OutputBytes(record);
      output_room_ += SizeInLog(record);
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
  target.room += SizeInLog(record);
}

void JobState::Replay(const v1::JobRecord& record) {
  if (record.has_branch()) branches_.Replay(record);
  const auto it = targets_.find(record.node());
  if (it == targets_.end()) return;
  ReplayDigest(it->second, record);
  Apply(it->second, record);
}

void JobState::ReplayDigest(Target& target, const v1::JobRecord& record) {
  const std::string& omitted = record.cut().records_sha256();
  if (!omitted.empty()) {
    target.digest = RecordsDigest(omitted);
    if (record.sequence() == 0) target.has_gap = true;  // it is not known which record follows
  } else if (record.sequence() > 0) {
    target.digest.Add(record);
  }
}

// Accepts the record as the next one of its node, and states whether a final one proves the others.
void JobState::SetSequence(Target& target, v1::JobRecord* record) {
  if (record->has_cut())
    record->mutable_cut()->clear_records_sha256();  // set by the root relay only
  if (record->sequence() != target.sequence + 1) target.has_gap = true;
  target.sequence = record->sequence();
  target.deadline.NoteRecord();
  target.digest.Add(*record);
  if (!record->has_final()) return;
  v1::JobRecord::Final& final = *record->mutable_final();
  final.mutable_signature()->clear_certificate_chain_pem();
  final.set_records_verified(!target.has_gap &&
                             final.signature().records_sha256() == target.digest.value());
}

bool JobState::Fits(const v1::JobRecord& record) const {
  return kept_ + OutputBytes(record) <= plan_.max_output &&
         output_room_ + SizeInLog(record) <= 2 * plan_.max_output + kOutputRoom;
}

// Adds a Cut record for the bytes that were omitted since the last one.
void JobState::AddCut(std::string_view node, Target& target,
                      const google::protobuf::Timestamp& time,
                      std::vector<v1::JobRecord>* accepted) {
  if (target.room > kMaxRoom - kCutRoom) target.overrun = true;
  v1::JobRecord record = MakeRecord(node, absl::UnixEpoch());
  *record.mutable_time() = time;
  record.mutable_cut()->set_bytes(std::exchange(target.cut, 0));
  record.mutable_cut()->set_records_sha256(target.digest.value());
  record.set_sequence(target.overrun ? 0 : target.sequence);
  Apply(target, record);
  accepted->push_back(std::move(record));
}

std::vector<v1::JobRecord> JobState::Receive(v1::JobRecord record) {
  std::vector<v1::JobRecord> accepted;
  const auto it = targets_.find(record.node());
  if (it == targets_.end()) return accepted;
  Target& target = it->second;
  if (target.stage == Stage::kFinal && !target.final_is_ours) return accepted;
  if (target.overrun) return ReceiveOverrun(target, std::move(record));
  // The node signed its final record: what came with its number or a later one is forged. Else the
  // node sends a missing record again, and this one after it.
  const bool is_late = record.has_final() && record.sequence() <= target.sequence;
  if (!is_late && record.sequence() != target.sequence + 1) return accepted;
  if (!record.has_output() && !record.has_final() && target.room + SizeInLog(record) > kMaxRoom) {
    target.overrun = true;
    SetSequence(target, &record);
    AddCut(record.node(), target, record.time(), &accepted);
    return accepted;
  }
  if (record.has_output() && !Fits(record)) {
    target.cut += OutputBytes(record);
    SetSequence(target, &record);
    const bool due = target.cut >= kCutBytes || target.sequence - target.stored >= kCutRecords;
    if (due || !target.cutting) AddCut(record.node(), target, record.time(), &accepted);
    return accepted;
  }
  if (target.sequence > target.stored) AddCut(record.node(), target, record.time(), &accepted);
  SetSequence(target, &record);
  Apply(target, record);
  accepted.push_back(std::move(record));
  return accepted;
}

std::vector<v1::JobRecord> JobState::ReceiveOverrun(Target& target, v1::JobRecord record) {
  std::vector<v1::JobRecord> accepted;
  if (record.sequence() <= target.sequence && !record.has_final()) return accepted;
  target.cut = std::min(kMaxCount, target.cut + OutputBytes(record));
  if (record.has_final() && target.cut > 0) {
    AddCut(record.node(), target, record.time(), &accepted);
  }
  SetSequence(target, &record);
  if (!record.has_final()) return accepted;
  Apply(target, record);
  accepted.push_back(std::move(record));
  return accepted;
}

int64_t JobState::Reached(std::string_view node) const {
  const auto it = targets_.find(node);
  if (it == targets_.end()) return 0;
  return it->second.overrun ? it->second.sequence : it->second.stored;
}

std::vector<std::string> JobState::Release(absl::Time now, const TargetRoutes& routes) {
  std::vector<std::string> nodes;
  if (cancelled_) return nodes;
  const size_t limit = plan_.parallel == 0 ? targets_.size() : static_cast<size_t>(plan_.parallel);
  for (auto& [node, target] : targets_) {
    if (busy_ >= limit) break;
    if (target.stage != Stage::kWaiting) continue;
    if (plan_.parallel != 0 && !routes.Find(node).attached) continue;
    Move(target, Stage::kReleased);
    if (plan_.parallel != 0) target.wait_until = std::max(target.wait_until, now + plan_.wait);
    nodes.push_back(node);
  }
  return nodes;
}

v1::JobRecord JobState::MakeRecord(std::string_view node, absl::Time now) const {
  v1::JobRecord record;
  record.set_job(plan_.job.job());
  record.set_node(std::string(node));
  ToProto(now, record.mutable_time());
  return record;
}

v1::JobRecord JobState::FinalOf(std::string_view node, v1::JobOutcome outcome,
                                std::string_view detail, absl::Time now) const {
  v1::JobRecord record = MakeRecord(node, now);
  record.mutable_final()->set_outcome(outcome);
  record.mutable_final()->set_detail(std::string(detail));
  return record;
}

std::vector<v1::JobRecord> JobState::EndUnknown(absl::Time now, const ExplainUnknown& explain) {
  std::vector<v1::JobRecord> made;
  for (auto& [node, target] : targets_) {
    const std::string why = explain(node);
    if (why.empty()) continue;
    made.push_back(FinalOf(node, v1::JOB_OUTCOME_UNKNOWN, why, now));
    Apply(target, made.back());
  }
  return made;
}

// Returns whether the node has been unreachable for longer than the job waits for it.
bool JobState::IsAway(const std::string& node, absl::Time now, const TargetRoutes& routes) const {
  const auto [attached, since] = routes.Find(node);
  const absl::Duration wait = cancelled_ ? std::min(plan_.wait, kAnswerGrace) : plan_.wait;
  return !attached && now >= since + wait && (!attach_until_ || now >= *attach_until_);
}

// Returns when the target is ended at the latest, if it sends no more records.
absl::Time JobState::LatestEnd(const Target& target, const Instant& now) const {
  if (target.stage == Stage::kStarted && target.deadline.end() < absl::InfiniteDuration()) {
    return now.wall + (target.deadline.attached_end() - now.monotonic);
  }
  return plan_.begin_until + plan_.time_limit + kAnswerGrace;
}

bool JobState::IsOver(const std::string& node, const Target& target, const Instant& now,
                      const TargetRoutes& routes) const {
  switch (target.stage) {
    case Stage::kWaiting:
      return now.wall > plan_.begin_until ||
             (now.wall >= target.wait_until && IsAway(node, now.wall, routes));
    case Stage::kReleased:
      if (now.wall > plan_.begin_until + kAnswerGrace) return true;
      if (now.wall < target.wait_until && !cancelled_) return false;
      return !routes.WasSent(node) || IsAway(node, now.wall, routes);
    case Stage::kStarted:
      if (now.monotonic <= target.deadline.end()) return false;
      return now.monotonic > target.deadline.attached_end() || !routes.Find(node).attached;
    case Stage::kFinal:
      break;
  }
  return false;
}

v1::JobRecord JobState::EndOf(const std::string& node, const Target& target, bool never_sent,
                              absl::Time now, const TargetRoutes& routes) const {
  const bool attached = routes.Find(node).attached;
  if (target.stage == Stage::kStarted) {
    const std::string why =
        attached ? "its final record did not arrive in time" : "the node became unreachable";
    return FinalOf(node, v1::JOB_OUTCOME_TIMED_OUT,
                   "the command may still run; it started, and " + why, now);
  }
  const bool none_starts = now > plan_.begin_until;
  if (target.stage == Stage::kWaiting && none_starts && (never_sent || attached)) {
    return FinalOf(node, v1::JOB_OUTCOME_EXPIRED,
                   "its turn did not come before the command's time to start was over", now);
  }
  if (never_sent) {
    return FinalOf(node, v1::JOB_OUTCOME_UNREACHABLE,
                   "it was not reachable while the command waited for it", now);
  }
  if (attached && none_starts) {
    return FinalOf(node, v1::JOB_OUTCOME_TIMED_OUT, "it did not answer in time", now);
  }
  return FinalOf(node, v1::JOB_OUTCOME_INDETERMINATE,
                 "the command may run; it was sent, and the node became unreachable first", now);
}

// Returns the nodes that the command was never sent to, and cancels it on the others.
std::set<std::string> JobState::Withdraw(const std::vector<std::string>& nodes,
                                         TargetRoutes& routes) const {
  std::set<std::string> never_sent;
  std::vector<std::string> dispatched;
  for (const std::string& node : nodes) {
    const bool waiting = targets_.find(node)->second.stage == Stage::kWaiting;
    if (waiting && !resumed_) {
      never_sent.insert(node);
    } else {
      dispatched.push_back(node);
    }
  }
  if (dispatched.empty()) return never_sent;
  for (std::string& node : routes.Withdraw(dispatched)) never_sent.insert(std::move(node));
  return never_sent;
}

std::vector<v1::JobRecord> JobState::Tick(const Instant& now, TargetRoutes& routes) {
  if (resumed_ && !attach_until_) attach_until_ = now.wall + kAttachAfterRestart;
  std::vector<std::string> over;
  latest_end_ = absl::InfinitePast();
  for (auto& [node, target] : targets_) {
    if (target.stage == Stage::kFinal) continue;
    if (target.stage == Stage::kStarted) {
      target.deadline.Update(now, plan_.begin_until, plan_.time_limit);
    }
    latest_end_ = std::max(latest_end_, LatestEnd(target, now));
    if (IsOver(node, target, now, routes)) over.push_back(node);
  }
  std::vector<v1::JobRecord> made;
  const std::set<std::string> never_sent = Withdraw(over, routes);
  for (const std::string& node : over) {
    Target& target = targets_.find(node)->second;
    made.push_back(EndOf(node, target, never_sent.contains(node), now.wall, routes));
    Apply(target, made.back());
  }
  return made;
}

std::vector<v1::JobRecord> JobState::Cancel(absl::Time now, TargetRoutes& routes) {
  cancelled_ = true;
  std::vector<v1::JobRecord> made;
  for (const std::string& node : Withdraw(Open(), routes)) {
    made.push_back(FinalOf(node, v1::JOB_OUTCOME_CANCELLED, "it had not started", now));
    Apply(targets_.find(node)->second, made.back());
  }
  return made;
}

std::vector<v1::JobRecord> JobState::RelaysChanged(const std::map<std::string, bool>& relays,
                                                   absl::Time now, const RelayOf& relay_of) {
  std::map<std::string, int64_t> waiting;
  for (const auto& [node, target] : targets_) {
    if (target.stage != Stage::kFinal) ++waiting[relay_of(node)];
  }
  return branches_.OfRelays(relays, waiting, now);
}

std::vector<v1::JobRecord> JobState::ReportLost(const Instant& now, const TargetRoutes& routes) {
  std::vector<BranchRecords::Running> running;
  for (const auto& [node, target] : targets_) {
    if (target.stage == Stage::kStarted) running.push_back({node, LatestEnd(target, now)});
  }
  return branches_.OfNodes(running, now.wall, routes);
}

std::vector<std::string> JobState::Open() const {
  std::vector<std::string> nodes;
  for (const auto& [node, target] : targets_) {
    if (target.stage != Stage::kFinal) nodes.push_back(node);
  }
  return nodes;
}

std::vector<std::string> JobState::Abandoned() const {
  std::vector<std::string> nodes;
  for (const auto& ended : ours_) {
    if (IsAbandoned(ended)) nodes.push_back(ended.first);
  }
  return nodes;
}

void JobState::SetEnd(absl::Time end) { ToProto(end, plan_.job.mutable_end_time()); }
void JobState::SetLate(absl::Time time) { ToProto(time, plan_.job.mutable_late_time()); }

v1::Job JobState::Describe() const {
  v1::Job job = plan_.job;
  job.clear_outcomes();  // of a job that had ended
  const v1::JobState ended = cancelled_ ? v1::JOB_STATE_CANCELLED : v1::JOB_STATE_ENDED;
  job.set_state(open_ > 0 ? v1::JOB_STATE_RUNNING : ended);
  if (open_ > 0) ToProto(latest_end_, job.mutable_deadline());
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
