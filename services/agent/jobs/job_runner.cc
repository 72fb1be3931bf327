#include "services/agent/jobs/job_runner.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/agent/jobs/deployment_state.h"
#include "services/agent/jobs/job_plan.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"
#include "services/common/identity/signed_command.h"
#include "services/common/jobs/final_record.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr absl::Duration kForgetEvery = absl::Minutes(10);
constexpr absl::Duration kDiskRetry = absl::Seconds(1);
constexpr BackoffOptions kRecoverRetry = {absl::Seconds(1), absl::Seconds(10)};
// One sync stores all cancels and refusals of this time: a peer can send any number of them.
constexpr absl::Duration kStoreAfter = absl::Milliseconds(10);

absl::Duration MonotonicNow() { return SystemClock().MonotonicNow(); }

}  // namespace

JobRunner::JobRunner(JobRunnerOptions options, std::unique_ptr<CommandJudge> judge,
                     std::unique_ptr<CancelledJobs> cancelled, std::function<void()> on_records)
    : options_(std::move(options)),
      judge_(std::move(judge)),
      on_records_(std::move(on_records)),
      folder_(absl::StrCat(options_.trust.folder, "/jobs")),
      quota_(options_.max_spool),
      docker_(options_.docker_socket, options_.registry_credentials),
      secret_folders_(options_.trust.folder, options_.trust.node, options_.memory_folders),
      // A state is left if the container could not be removed when the job ended.
      finished_(PosixFileOps(), folder_, SystemClock(),
                [](const std::string& job) {
                  DeploymentState(job).Remove(/*with_unsaved=*/true).IgnoreError();
                }),
      recover_backoff_(kRecoverRetry),
      cancelled_(std::move(cancelled)),
      records_({options_.trust.node, options_.sign, options_.timers, options_.executor,
                // One for each job that is cancelled, refused or finished.
                options_.max_cancelled + options_.max_remembered},
               on_records_),
      tend_(*options_.timers, *options_.executor, [this] { Tend(); }),
      sweep_(*options_.timers, *options_.executor, [this] { Sweep(); }) {}

absl::StatusOr<std::unique_ptr<JobRunner>> JobRunner::Open(JobRunnerOptions options,
                                                           std::function<void()> on_records) {
  ASSIGN_OR_RETURN(auto judge, CommandJudge::Open(options.trust));
  ASSIGN_OR_RETURN(
      auto cancelled,
      CancelledJobs::Open(PosixFileOps(), absl::StrCat(options.trust.folder, "/cancelled-jobs"),
                          SystemClock(), options.max_cancelled));
  std::unique_ptr<JobRunner> runner(new JobRunner(std::move(options), std::move(judge),
                                                  std::move(cancelled), std::move(on_records)));
  RETURN_IF_ERROR(runner->Recover());
  runner->tend_.RunAfter(absl::ZeroDuration());
  runner->sweep_.RunAfter(runner->options_.first_sweep);
  return runner;
}

JobRunner::~JobRunner() {
  Stop(absl::ZeroDuration());
  sweep_.Stop();
  tend_.Stop();
  MutexLock lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (job->thread.joinable()) job->thread.join();
  }
  std::vector<std::string> stored;
  cancelled_->Store(&stored).IgnoreError();  // they are not reported, so the parent repeats them
}

JobRunner::Job& JobRunner::AddJob(const std::string& id, std::unique_ptr<NodeJobFolder> folder) {
  auto job = std::make_unique<Job>();
  job->id = id;
  job->folder = std::move(folder);
  records_.Add(id, *job->folder->log());
  return *(jobs_[id] = std::move(job));
}

void JobRunner::Receive(const v1::JobCommand& command) {
  if (!IsJobId(command.job())) {
    return LogLimited(LogLevel::kWarning, "a command with an invalid job id is dropped", "");
  }
  {
    MutexLock lock(mutex_);
    if (stopping_ || IsKnown(command.job())) return;
  }
  Verdict verdict =
      judge_->Judge(command.command(), TargetFor(command, options_.trust.node), absl::Now());
  if (verdict.genuine && verdict.command.job() != command.job()) {
    verdict.genuine = false;
    verdict.status = errors::CommandOfOtherJob();
  }
  if (!verdict.status.ok()) {
    // A relay can send any number of commands that are not genuine.
    LogLimited(LogLevel::kWarning, "a command is refused",
               verdict.genuine ? command.job() : ReasonOf(verdict.status),
               {{"job", command.job()}, {"error", verdict.status}});
  }
  {
    MutexLock lock(mutex_);
    if (IsKnown(command.job())) return;  // it arrived twice, or with its cancel, at the same time
    if (!verdict.genuine) return EndWithoutRecords(command.job(), Refusal(verdict.status));
    if (verdict.status.ok()) cancelled_->HandleCommand(FromProto(verdict.command.not_before()));
    Admit(command, verdict);
    tend_.RunAfter(absl::ZeroDuration());
  }
  on_records_();
}

bool JobRunner::IsKnown(const std::string& job) {
  if (jobs_.contains(job)) return true;  // its records are sent anyway
  if (unrecovered_.contains(job)) return true;
  if (cancelled_->Contains(job)) {
    EndWithoutRecords(job, cancelled_->FinalOf(job));
    return true;
  }
  if (!finished_.Contains(job)) return false;
  records_.AddRefusal(job, FinalOfReplay(job));
  on_records_();
  return true;
}

// The command is replayed, or the root relay does not know its outcome: a relay may have sent the
// acks itself.
v1::JobRecord JobRunner::FinalOfReplay(const std::string& job) const {
  if (finished_.IsUnreadable(job)) {
    return FinalRecord(v1::JOB_OUTCOME_LOST, "RECORDS_DAMAGED",
                       "its files on the node's disk are damaged");
  }
  if (finished_.HasStarted(job)) {
    return FinalRecord(v1::JOB_OUTCOME_LOST, "REPLAYED",
                       "it has run on this node, and its outcome was acknowledged");
  }
  return FinalRecord(v1::JOB_OUTCOME_REFUSED, "REPLAYED",
                     "it did not start on this node, and its outcome was acknowledged");
}

void JobRunner::Admit(const v1::JobCommand& command, const Verdict& verdict) {
  const std::string& id = command.job();
  const auto is_full = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return jobs_.size() + finished_.size() + unrecovered_.size() >= options_.max_remembered;
  };
  if (is_full() && verdict.status.ok()) {
    finished_.ForgetBefore(FromProto(verdict.command.not_before()));
  }
  if (is_full()) return EndWithoutRecords(id, TooManyJobs(options_.max_remembered));
  auto folder =
      NodeJobFolder::Create(PosixFileOps(), folder_, id, options_.trust.node, command.command());
  if (!folder.ok()) {
    Log(LogLevel::kError, "a job cannot be stored and is not run",
        {{"job", id}, {"error", folder.status()}});
    return EndWithoutRecords(id, FinalRecord(v1::JOB_OUTCOME_FAILED, ReasonOf(folder.status()),
                                             ToStd(folder.status().message())));
  }
  Job& job = AddJob(id, *std::move(folder));
  if (!verdict.status.ok()) return End(job, Refusal(verdict.status));
  if (waiting_.size() >= options_.max_waiting) return End(job, TooManyJobs(options_.max_waiting));
  Queue(job, command, verdict);
}

void JobRunner::Queue(Job& job, const v1::JobCommand& command, const Verdict& verdict) {
  job.plan = MakeJobPlan(command, verdict);
  absl::Duration within = job.folder->not_after() + kCommandClockSlack - absl::Now();
  if (command.has_begin_within()) within = std::min(within, FromProto(command.begin_within()));
  job.state = State::kWaiting;
  waiting_.Add(job.id, MonotonicNow() + within);
}

void JobRunner::Cancel(const v1::JobCancel& cancel) {
  const auto& nodes = cancel.nodes();
  const bool ours = nodes.empty() || std::ranges::find(nodes, options_.trust.node) != nodes.end();
  if (!ours || !IsJobId(cancel.job())) return;
  MutexLock lock(mutex_);
  CancelJob(cancel.job());
}

void JobRunner::CancelJob(const std::string& id) {
  if (const auto later = unrecovered_.find(id); later != unrecovered_.end()) {
    later->second = true;
    return;
  }
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) {
    if (!finished_.Contains(id)) EndWithoutRecords(id, CancelledBeforeStart());
    return;
  }
  Job& job = *found->second;
  if (job.state == State::kRunning) {
    job.process->Stop(JobStop::kCancelled);
  } else if (waiting_.Remove(job.id)) {
    job.state = State::kEnded;
    // If its folder cannot tell it, the list of cancels prevents a start after a restart.
    if (!job.folder->log()->Append(CancelledBeforeStart()).ok()) {
      return EndWithoutRecords(job.id, CancelledBeforeStart());
    }
    on_records_();
  }
}

// Ends a job whose folder does not have its final record. The outcome is reported when it is
// durable that the command must not run: a copy of it may arrive after a restart.
void JobRunner::EndWithoutRecords(const std::string& job, v1::JobRecord final) {
  const bool scheduled = !cancelled_->all_stored();
  if (!cancelled_->Add(job, std::move(final))) {
    return LogLimited(LogLevel::kWarning,
                      "too many refused and cancelled jobs: another is neither kept nor reported",
                      "", {{"job", job}, {"limit", options_.max_cancelled}});
  }
  if (cancelled_->IsStored(job)) return ReportStored(job);
  if (!scheduled) tend_.RunAfter(kStoreAfter);
}

// The root relay may be waiting for the outcome.
void JobRunner::ReportStored(const std::string& job) {
  records_.AddRefusal(job, cancelled_->FinalOf(job));
  on_records_();
}

void JobRunner::HandleAcks(const v1::RecordsAck& acks) {
  records_.HandleAcks(acks);
  {
    MutexLock lock(mutex_);
    tend_.RunAfter(absl::ZeroDuration());
  }
  on_records_();
}

void JobRunner::Rewind() {
  records_.Rewind();
  on_records_();
}

void JobRunner::Stop(absl::Duration grace) {
  MutexLock lock(mutex_);
  stopping_ = true;
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_ == 0; };
  if (idle_.WaitFor(mutex_, grace, idle)) return;
  for (const auto& [id, job] : jobs_) {
    if (job->state == State::kRunning) job->process->Stop(JobStop::kAgentStops);
  }
  while (!idle()) idle_.Wait(mutex_);
}

void JobRunner::Tend() {
  MutexLock lock(mutex_);
  RemoveReported();
  StoreCancels();
  if (!stopping_) {
    RetryRecovery();
    StartWaiting();
  }
  finished_.Forget();
  cancelled_->Forget();
  tend_.RunAfter(NextTend());
}

// Joins finished threads, and removes the records of jobs that the root relay has completely.
void JobRunner::RemoveReported() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    Job& job = *it->second;
    if (job.state == State::kEnded && job.thread.joinable()) {
      job.thread.join();
      job.spooled += job.process->spooled();
    }
    if (job.state != State::kEnded || !job.folder->log()->final_acked()) {
      ++it;
      continue;
    }
    records_.Remove(job.id);
    if (const absl::Status s = job.folder->SetDone(); !s.ok()) {
      Log(LogLevel::kWarning, "the records of a finished job cannot be removed",
          {{"job", job.id}, {"error", s}});
    }
    quota_.Release(job.spooled);
    finished_.Add(job.id, job.folder->latest_end(), job.folder->has_started());
    it = jobs_.erase(it);
  }
}

void JobRunner::StoreCancels() {
  if (cancelled_->all_stored()) return;
  std::vector<std::string> stored;
  const absl::Status status = cancelled_->Store(&stored);
  if (!status.ok()) {
    LogLimited(LogLevel::kError, "refused and cancelled jobs cannot be stored; trying again", "",
               {{"error", status}});
  }
  for (const std::string& job : stored) ReportStored(job);
}

void JobRunner::StartWaiting() {
  bool expired = false;
  while (const auto id = waiting_.PopExpired(MonotonicNow())) {
    End(*jobs_.at(*id), FinalRecord(v1::JOB_OUTCOME_EXPIRED, "COMMAND_EXPIRED",
                                    "it could not start in time on this node"));
    expired = true;
  }
  while (running_ < options_.max_parallel) {
    const auto id = waiting_.PopNext();
    if (!id) break;
    Begin(*jobs_.at(*id));
  }
  if (expired) on_records_();
}

void JobRunner::Begin(Job& job) {
  job.state = State::kRunning;
  ++running_;
  job.process = std::make_unique<JobProcess>(JobHost{options_.trust.folder,
                                                     options_.trust.node,
                                                     quota_,
                                                     docker_,
                                                     *options_.contents,
                                                     {options_.secrets, &secret_folders_},
                                                     options_.workspaces},
                                             *job.folder, job.id, std::move(job.plan), on_records_);
  job.thread = std::thread([this, &job] {
    job.process->Run();
    MutexLock lock(mutex_);
    job.state = State::kEnded;
    --running_;
    tend_.RunAfter(absl::ZeroDuration());
    idle_.NotifyAll();
  });
}

void JobRunner::End(Job& job, v1::JobRecord final) {
  job.state = State::kEnded;
  const absl::Status status = job.folder->log()->Append(final);
  if (status.ok()) return;
  Log(LogLevel::kError, "the outcome of a job cannot be stored",
      {{"job", job.id}, {"error", status}});
  EndWithoutRecords(job.id, std::move(final));
}

absl::Duration JobRunner::NextTend() const {
  absl::Duration next = cancelled_->all_stored() ? kForgetEvery : kDiskRetry;
  if (const auto due = waiting_.NextDue(); due && !stopping_) {
    next = std::min(next, *due - MonotonicNow());
  }
  if (!unrecovered_.empty() && !stopping_) next = std::min(next, recover_at_ - MonotonicNow());
  return next;
}

}  // namespace muster
