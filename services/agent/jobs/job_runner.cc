#include "services/agent/jobs/job_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/agent/jobs/final_record.h"
#include "services/agent/jobs/job_plan.h"
#include "services/agent/jobs/job_recovery.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"
#include "services/common/identity/signed_command.h"
#include "services/common/jobs/job_record.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// A job is stored for this time after its command expires.
constexpr absl::Duration kRemember = absl::Hours(1);
constexpr absl::Duration kForgetEvery = absl::Minutes(10);

bool IsJobId(const std::string& id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

absl::Duration MonotonicNow() { return SystemClock().MonotonicNow(); }

}  // namespace

JobRunner::JobRunner(JobRunnerOptions options, std::unique_ptr<CommandJudge> judge,
                     std::function<void()> on_records)
    : options_(std::move(options)),
      judge_(std::move(judge)),
      on_records_(std::move(on_records)),
      folder_(absl::StrCat(options_.trust.folder, "/jobs")),
      quota_(options_.max_spool),
      refusals_(options_.trust.node) {}

absl::StatusOr<std::unique_ptr<JobRunner>> JobRunner::Open(JobRunnerOptions options,
                                                           std::function<void()> on_records) {
  ASSIGN_OR_RETURN(auto judge, CommandJudge::Open(options.trust));
  std::unique_ptr<JobRunner> runner(
      new JobRunner(std::move(options), std::move(judge), std::move(on_records)));
  RETURN_IF_ERROR(runner->Recover());
  runner->manager_ = std::thread([r = runner.get()] { r->Manage(); });
  return runner;
}

JobRunner::~JobRunner() {
  if (!manager_.joinable()) return;
  Stop(absl::ZeroDuration());
  {
    MutexLock lock(mutex_);
    ended_ = true;
    changed_ = true;
  }
  wake_.NotifyAll();
  manager_.join();
}

absl::Status JobRunner::Recover() {
  RETURN_IF_ERROR(MakeFolders(PosixFileOps(), folder_));
  ASSIGN_OR_RETURN(const auto entries, PosixFileOps().List(folder_));
  MutexLock lock(mutex_);
  for (const FolderEntry& entry : entries) {
    if (entry.type != FileType::kFolder) continue;
    auto found = RecoverJob(PosixFileOps(), folder_, entry.name, options_.trust.node);
    if (!found.ok()) {
      // A job that cannot be read does not stop the agent, and does not run again. Its folder stays
      // for a person, or for the next start.
      Log(LogLevel::kError, "a job cannot be read and is left out",
          {{"job", entry.name}, {"error", found.status()}});
      finished_[entry.name] = {"", absl::InfiniteFuture()};
      continue;
    }
    if (*found) Remember(entry.name, *std::move(found));
  }
  return absl::OkStatus();
}

void JobRunner::Remember(const std::string& id, std::unique_ptr<NodeJobFolder> folder) {
  if (folder->done()) {
    finished_[id] = {folder->command_sha256(), folder->not_after()};
    return;
  }
  auto job = std::make_shared<Job>();
  job->id = id;
  job->spooled = folder->log()->size();
  job->folder = std::move(folder);
  quota_.Reserve(job->spooled);
  jobs_[id] = std::move(job);
}

void JobRunner::Receive(const v1::JobCommand& command) {
  if (!IsJobId(command.job())) {
    return Log(LogLevel::kWarning, "a command under no job's id is dropped", {});
  }
  {
    MutexLock lock(mutex_);
    if (stopping_ || IsKnown(command)) return;
  }
  Verdict verdict =
      judge_->Judge(command.command(), TargetFor(command, options_.trust.node), absl::Now());
  if (verdict.genuine && verdict.command.job() != command.job()) {
    verdict.genuine = false;
    verdict.status = errors::CommandOfOtherJob();
  }
  if (!verdict.status.ok()) {
    Log(LogLevel::kWarning, "a command is refused",
        {{"job", command.job()}, {"error", verdict.status}});
  }
  {
    MutexLock lock(mutex_);
    if (verdict.genuine) {
      Admit(command, verdict);
    } else {
      refusals_.Add(command.job(), Refusal(verdict.status));
    }
    changed_ = true;
  }
  wake_.NotifyAll();
  on_records_();
}

bool JobRunner::IsKnown(const v1::JobCommand& command) {
  if (jobs_.contains(command.job())) return true;  // its records are sent anyway
  if (cancelled_.Contains(command.job())) {
    AddCancelled(command.job());
    return true;
  }
  const auto finished = finished_.find(command.job());
  if (finished == finished_.end()) return false;
  // The root relay does not know its outcome, or the command is replayed.
  refusals_.Add(command.job(),
                FinalRecord(v1::JOB_OUTCOME_REFUSED, "REPLAYED",
                            "it ran on this node already, and its outcome was reported"));
  on_records_();
  return true;
}

void JobRunner::Admit(const v1::JobCommand& command, const Verdict& verdict) {
  const std::string& id = command.job();
  if (jobs_.contains(id) || finished_.contains(id)) return;  // it arrived twice at the same time
  if (jobs_.size() + finished_.size() >= options_.max_remembered) {
    return refusals_.Add(id, TooManyJobs(options_.max_remembered));
  }
  auto folder =
      NodeJobFolder::Create(PosixFileOps(), folder_, id, options_.trust.node, command.command());
  if (!folder.ok()) {
    Log(LogLevel::kError, "a job cannot be stored and is not run",
        {{"job", id}, {"error", folder.status()}});
    return refusals_.Add(id, FinalRecord(v1::JOB_OUTCOME_FAILED, ReasonOf(folder.status()),
                                         ToStd(folder.status().message())));
  }
  refusals_.Drop(id);
  auto job = std::make_shared<Job>();
  job->id = id;
  job->folder = *std::move(folder);
  jobs_[id] = job;
  if (!verdict.status.ok()) return End(*job, Refusal(verdict.status));
  if (waiting_.size() >= options_.max_waiting) return End(*job, TooManyJobs(options_.max_waiting));
  Queue(job, command, verdict);
}

void JobRunner::Queue(const std::shared_ptr<Job>& job, const v1::JobCommand& command,
                      const Verdict& verdict) {
  job->plan = MakeJobPlan(command, verdict);
  absl::Duration within = job->folder->not_after() + kCommandClockSlack - absl::Now();
  if (command.has_begin_within()) within = std::min(within, FromProto(command.begin_within()));
  job->begin_by = MonotonicNow() + within;
  job->state = State::kWaiting;
  waiting_.push_back(job->id);
}

void JobRunner::Cancel(const v1::JobCancel& cancel) {
  const auto& nodes = cancel.nodes();
  const bool ours = nodes.empty() || std::ranges::find(nodes, options_.trust.node) != nodes.end();
  MutexLock lock(mutex_);
  const auto found = jobs_.find(cancel.job());
  if (!ours || !IsJobId(cancel.job())) return;
  if (found == jobs_.end()) {
    if (finished_.contains(cancel.job())) return;
    cancelled_.Add(cancel.job());
    return AddCancelled(cancel.job());
  }
  Job& job = *found->second;
  if (job.state == State::kRunning) {
    job.process->Stop(JobStop::kCancelled);
  } else if (job.state == State::kWaiting) {
    std::erase(waiting_, job.id);
    End(job, FinalRecord(v1::JOB_OUTCOME_CANCELLED, "", "it had not started"));
    lock.Unlock();
    on_records_();
  }
}

// The root relay may be waiting for the outcome.
void JobRunner::AddCancelled(const std::string& job) {
  refusals_.Add(job, FinalRecord(v1::JOB_OUTCOME_CANCELLED, "", "it had not started"));
  on_records_();
}

bool JobRunner::NextRecords(v1::JobRecords* records) {
  MutexLock lock(mutex_);
  refusals_.NextRecords(kMaxJobRecords, options_.sign, records);
  bool any = records->records_size() > 0;
  // From the job after the last one that was served, once around.
  auto next = jobs_.upper_bound(last_served_);
  for (size_t i = 0; i < jobs_.size(); ++i, ++next) {
    if (next == jobs_.end()) next = jobs_.begin();
    Job& job = *next->second;
    if (job.unreadable || job.folder->log() == nullptr) continue;
    const auto added = job.folder->log()->NextRecords(kMaxJobRecords, options_.sign, records);
    if (!added.ok()) {
      job.unreadable = true;
      Log(LogLevel::kError, "the records of a job cannot be sent",
          {{"job", job.id}, {"error", added.status()}});
      continue;
    }
    if (*added) last_served_ = job.id;
    any = any || *added;
  }
  return any;
}

void JobRunner::HandleAcks(const v1::RecordsAck& acks) {
  {
    MutexLock lock(mutex_);
    for (const v1::RecordsAck::Reached& reached : acks.reached()) {
      if (reached.node() != options_.trust.node) continue;
      const auto job = jobs_.find(reached.job());
      if (job != jobs_.end() && job->second->folder->log() != nullptr) {
        job->second->folder->log()->Ack(reached.sequence());
        changed_ = true;
        continue;
      }
      refusals_.Ack(reached.job());
    }
  }
  wake_.NotifyAll();
  acked_.NotifyAll();
  on_records_();
}

void JobRunner::Rewind() {
  {
    MutexLock lock(mutex_);
    refusals_.Rewind();
    for (const auto& [id, job] : jobs_) {
      if (job->folder->log() != nullptr) job->folder->log()->Rewind();
    }
  }
  on_records_();
}

bool JobRunner::AwaitAcked(absl::Duration limit) {
  MutexLock lock(mutex_);
  return acked_.WaitFor(mutex_, limit,
                        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return all_acked(); });
}

bool JobRunner::all_acked() const {
  return refusals_.empty() && std::ranges::none_of(jobs_, [](const auto& entry) {
           const RecordOutbox* log = entry.second->folder->log();
           return log != nullptr && log->has_final() && !log->final_acked();
         });
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

void JobRunner::Manage() {
  MutexLock lock(mutex_);
  for (;;) {
    RemoveAcked();
    if (ended_) return;
    if (!stopping_) StartWaiting();
    Forget();
    const auto changed = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return std::exchange(changed_, false);
    };
    wake_.WaitFor(mutex_, NextWake(), changed);
  }
}

void JobRunner::StartWaiting() {
  const absl::Duration now = MonotonicNow();
  bool expired = false;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const std::shared_ptr<Job> job = jobs_.at(*it);
    if (now > job->begin_by) {
      End(*job, FinalRecord(v1::JOB_OUTCOME_EXPIRED, "COMMAND_EXPIRED",
                            "it could not begin in time on this node"));
      expired = true;
    } else if (running_ < options_.max_parallel) {
      Begin(job);
    } else {
      ++it;
      continue;
    }
    it = waiting_.erase(it);
  }
  if (expired) on_records_();
}

void JobRunner::Begin(const std::shared_ptr<Job>& job) {
  job->state = State::kRunning;
  ++running_;
  job->process = std::make_unique<JobProcess>(*job->folder, quota_, job->id, std::move(job->plan),
                                              on_records_);
  job->thread = std::thread([this, job] {
    job->process->Run();
    MutexLock lock(mutex_);
    job->state = State::kEnded;
    job->thread_done = true;
    --running_;
    changed_ = true;
    wake_.NotifyAll();
    idle_.NotifyAll();
  });
}

void JobRunner::End(Job& job, v1::JobRecord final) {
  job.state = State::kEnded;
  const absl::Status status = job.folder->log()->Append(final);
  if (status.ok()) return;
  Log(LogLevel::kError, "the outcome of a job cannot be stored",
      {{"job", job.id}, {"error", status}});
  refusals_.Add(job.id, std::move(final));
}

// Joins finished threads, and removes the records of jobs that the root relay has completely.
void JobRunner::RemoveAcked() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    Job& job = *it->second;
    if (job.thread_done && job.thread.joinable()) {
      job.thread.join();
      job.spooled = job.process->spooled();
    }
    const bool acked = job.state == State::kEnded && job.folder->log()->final_acked();
    if (!acked) {
      ++it;
      continue;
    }
    if (const absl::Status s = job.folder->SetDone(); !s.ok()) {
      Log(LogLevel::kWarning, "the records of a finished job cannot be removed",
          {{"job", job.id}, {"error", s}});
    }
    quota_.Release(job.spooled);
    finished_[job.id] = {job.folder->command_sha256(), job.folder->not_after()};
    it = jobs_.erase(it);
  }
}

void JobRunner::Forget() {
  const absl::Time now = absl::Now();
  std::erase_if(finished_, [&](const auto& entry) {
    if (now < entry.second.not_after + kCommandClockSlack + kRemember) return false;
    const absl::Status s = RemoveTree(PosixFileOps(), absl::StrCat(folder_, "/", entry.first));
    if (!s.ok()) Log(LogLevel::kWarning, "a job cannot be removed", {{"error", s}});
    return s.ok();
  });
}

absl::Duration JobRunner::NextWake() const {
  absl::Duration wake = kForgetEvery;
  const absl::Duration now = MonotonicNow();
  for (const std::string& id : waiting_) wake = std::min(wake, jobs_.at(id)->begin_by - now);
  return std::max(wake, absl::Milliseconds(1));
}

}  // namespace muster
