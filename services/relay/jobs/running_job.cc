#include "services/relay/jobs/running_job.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// Another attempt would fail too, and delay every other job.
bool IsPermanent(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "JOURNAL_FULL" || reason == "JOURNAL_RECORD_SIZE";
}

// Returns why no command can be sent to a target; empty for a node of the topology, and for one
// that may attach while the command waits for it.
std::string WhyUnknown(const TopologyView& topology, const RunningJob::Explanations& explanations,
                       std::string_view node) {
  const auto entry = topology.Find(node);
  if (node == topology.name() || (entry && entry->is_relay)) {
    return "it is a relay, which runs no commands";
  }
  if (entry) return "";
  const auto explained = explanations.find(node);
  return explained == explanations.end()
             ? "no node of this name is attached, or was within the last week; if it has joined, "
               "start its agent"
             : explained->second;
}

}  // namespace

RunningJob::RunningJob(Fleet fleet, JobRequest request, JobState state,
                       std::unique_ptr<JobFolder> folder, std::unique_ptr<Journal> log,
                       bool is_late, bool has_late_records)
    : fleet_(fleet),
      id_(state.plan().job.job()),
      request_(std::move(request)),
      folder_(std::move(folder)),
      is_late_(is_late),
      log_(std::move(log)),
      reopened_(has_late_records),
      state_(std::move(state)),
      end_(log_->end()) {}

void RunningJob::Start(const Explanations& explanations) {
  MutexLock lock(mutex_);
  AddPending(state_.EndUnknown(fleet_.clock.Now(), [&](std::string_view node) {
    return WhyUnknown(fleet_.topology, explanations, node);
  }));
  started_ = true;
  JobRoutes routes = Routes();
  if (state_.cancelled()) AddPending(state_.Cancel(fleet_.clock.Now(), routes));
  Release();
}

void RunningJob::Continue() {
  MutexLock lock(mutex_);
  started_ = true;
  Release();
  JobRoutes routes = Routes();
  routes.Withdraw(state_.Abandoned());
  if (state_.cancelled()) AddPending(state_.Cancel(fleet_.clock.Now(), routes));
}

absl::StatusOr<std::optional<Cancellation>> RunningJob::Cancel(Cancellation cancellation) {
  {
    MutexLock lock(mutex_);
    if (state_.ended() || state_.cancelled()) return std::nullopt;
  }
  ASSIGN_OR_RETURN(auto stored, folder_->MarkCancelled(std::move(cancellation)));
  MutexLock lock(mutex_);
  // It has finished, or another call has cancelled it meanwhile.
  if (!stored || state_.cancelled()) return std::nullopt;
  JobRoutes routes = Routes();
  AddPending(state_.Cancel(fleet_.clock.Now(), routes));
  return stored;
}

bool RunningJob::Receive(v1::JobRecord record) {
  MutexLock lock(mutex_);
  auto accepted = state_.Receive(std::move(record));
  const bool final = !accepted.empty() && accepted.back().has_final();
  if (final) fleet_.dispatcher.Finish(id_, accepted.back().node());
  if (!is_late_ && !accepted.empty() && accepted.front().has_started()) {
    fleet_.dispatcher.MarkStarted(id_, accepted.front().node());
  }
  const bool is_new = !accepted.empty();
  AddPending(std::move(accepted));
  // It is the turn of the next target.
  if (final && state_.plan().parallel > 0) Release();
  return is_new;
}

void RunningJob::NoteDropped(const std::string& node, const absl::Status& why) {
  MutexLock lock(mutex_);
  if (state_.IsOpen(node)) dropped_[node] = std::string(why.message());
}

void RunningJob::OnReachable() {
  MutexLock lock(mutex_);
  Release();
}

void RunningJob::OnRelaysChanged(const std::map<std::string, bool>& relays) {
  const auto relay_of = [this](std::string_view node) {
    const auto entry = fleet_.topology.Find(node);
    return entry ? entry->relay : "";
  };
  MutexLock lock(mutex_);
  AddPending(state_.RelaysChanged(relays, fleet_.clock.Now(), relay_of));
}

void RunningJob::Tick() {
  MutexLock lock(mutex_);
  JobRoutes routes = Routes();
  const Instant now{fleet_.clock.Now(), fleet_.clock.MonotonicNow()};
  std::vector<v1::JobRecord> made = state_.Tick(now, routes);
  for (v1::JobRecord& record : made) {
    const auto dropped = dropped_.extract(record.node());
    if (dropped.empty()) continue;
    record.mutable_final()->set_reason("RECORD_REFUSED");
    absl::StrAppend(record.mutable_final()->mutable_detail(),
                    "; a record that arrived was refused: ", dropped.mapped());
  }
  AddPending(std::move(made));
  AddPending(state_.ReportLost(now, routes));
}

v1::Job RunningJob::Describe() const {
  MutexLock lock(mutex_);
  v1::Job job = state_.Describe();
  if (!is_late_) job.set_state(v1::JOB_STATE_RUNNING);
  return job;
}

int64_t RunningJob::Reached(std::string_view node) const {
  MutexLock lock(mutex_);
  return state_.Reached(node);
}

int64_t RunningJob::end() const {
  MutexLock lock(mutex_);
  return end_;
}

bool RunningJob::ended() const {
  MutexLock lock(mutex_);
  return state_.ended() && pending_.empty();
}

absl::StatusOr<bool> RunningJob::Store() {
  MutexLock log_lock(log_mutex_);
  {
    MutexLock lock(mutex_);
    auto& pending = pending_;
    std::move(pending.begin(), pending.end(), std::back_inserter(storing_));
    pending.clear();
  }
  if (storing_.empty()) return false;
  if (is_late_ && !reopened_) RETURN_IF_ERROR(folder_->MarkReopened());
  reopened_ = true;
  for (; appended_ < storing_.size(); ++appended_) {
    const absl::Status status = log_->Append(storing_[appended_].SerializeAsString());
    if (!status.ok() && !IsPermanent(status)) return status;
    if (!status.ok()) {
      LogLimited(LogLevel::kError, "a record of a job does not fit into its log and is lost",
                 storing_[appended_].node(),
                 {{"job", id_}, {"node", storing_[appended_].node()}, {"error", status}});
    }
  }
  RETURN_IF_ERROR(log_->Sync());
  storing_.clear();
  appended_ = 0;
  MutexLock lock(mutex_);
  end_ = log_->end();
  return true;
}

absl::StatusOr<v1::Job> RunningJob::Finish() {
  MutexLock log_lock(log_mutex_);
  v1::Job job;
  {
    MutexLock lock(mutex_);
    if (is_late_ && !reopened_) return state_.Describe();
    // A repeated call stores the same end.
    if (!finished_at_) finished_at_ = fleet_.clock.Now();
    is_late_ ? state_.SetLate(*finished_at_) : state_.SetEnd(*finished_at_);
    job = state_.Describe();
  }
  RETURN_IF_ERROR(folder_->MarkEnded(job, end(), Abandoned()));
  return job;
}

std::vector<std::string> RunningJob::Abandoned() const {
  MutexLock lock(mutex_);
  return state_.Abandoned();
}

bool RunningJob::has_abandoned() const {
  MutexLock lock(mutex_);
  return state_.has_abandoned();
}

JobRoutes RunningJob::Routes() const {
  const absl::Time deadline = FromProto(state_.plan().job.deadline());
  return JobRoutes(fleet_.topology, fleet_.dispatcher, id_,
                   std::max(deadline - fleet_.clock.Now(), absl::ZeroDuration()));
}

// Gives the targets whose turn it is to the dispatcher.
void RunningJob::Release() {
  if (!started_) return;
  const absl::Time now = fleet_.clock.Now();
  const JobState::Plan& plan = state_.plan();
  // After its time to start, a job of an earlier process is dispatched only to be cancelled.
  const bool may_be_out = state_.resumed() && plan.parallel == 0;
  if (now >= plan.begin_until && !may_be_out) return;
  const std::vector<std::string> nodes = state_.Release(now, Routes());
  if (nodes.empty()) return;
  const absl::Time wait_until =
      plan.parallel == 0 ? plan.wait_until : std::max(plan.wait_until, now + plan.wait);
  fleet_.dispatcher.Dispatch(request_.For(nodes, plan.begin_until - now, wait_until - now),
                             state_.resumed());
}

void RunningJob::AddPending(std::vector<v1::JobRecord> records) {
  std::move(records.begin(), records.end(), std::back_inserter(pending_));
}

}  // namespace muster
