#include "services/simulation/job_node.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/agent/jobs/job_recovery.h"
#include "services/common/base/status_macros.h"
#include "services/common/jobs/final_record.h"
#include "services/common/rpc/proto_time.h"

namespace muster::testing {
namespace {

constexpr char kJobs[] = "/node/jobs";

}  // namespace

JobNode::JobNode(uint64_t seed, std::string name, Network& network, Executions& executions)
    : disk(int64_t{1} << 40, seed),
      name_(std::move(name)),
      network_(network),
      executions_(executions),
      chance_(seed),
      upstream_(network, name_, false,
                {.welcome = [this] { sender_->Rewind(); },
                 .message = [this](const auto& message) { HandleMessage(message); },
                 .lost = [] {}}) {}

// As JobRunner::Open and Recover.
absl::Status JobNode::Start() {
  RETURN_IF_ERROR(MakeFolders(disk, kJobs));
  ASSIGN_OR_RETURN(cancelled_, CancelledJobs::Open(disk, "/node/cancelled-jobs", clock));
  finished_ = std::make_unique<FinishedJobs>(disk, kJobs, clock);
  ASSIGN_OR_RETURN(const auto entries, disk.List(kJobs));
  executor_ = std::make_unique<Executor>(Executor::Options{"node", 1, 1000});
  sender_ = std::make_unique<RecordSender>(
      RecordSender::Options{
          .node = name_, .sign = nullptr, .timers = &clock, .executor = executor_.get()},
      [] {});
  for (const FolderEntry& entry : entries) {
    auto found = RecoverJob(disk, kJobs, entry.name, name_);
    if (!found.ok()) {
      finished_->AddUnreadable(entry.name);
    } else if (*found != nullptr && (*found)->done()) {
      finished_->Add(entry.name, (*found)->not_after(), (*found)->process().has_value());
    } else if (*found != nullptr) {
      Job& job = jobs_[entry.name];
      job.folder = *std::move(found);
      job.started = job.ended = true;
      sender_->Add(entry.name, *job.folder->log());
    }
  }
  return absl::OkStatus();
}

void JobNode::Stop() {
  upstream_.Drop();
  sender_.reset();
  executor_.reset();
  jobs_.clear();
  finished_.reset();
  cancelled_.reset();
}

void JobNode::Tick(JobRelay& parent) {
  if (!running()) return;
  executor_->AwaitIdle();
  if (!upstream_.connecting()) upstream_.Connect(parent);
  for (auto& [id, job] : jobs_) Run(id, job);
  RemoveReported();
  std::vector<std::string> stored;
  cancelled_->Store(&stored).IgnoreError();
  for (const std::string& job : stored) sender_->AddRefusal(job, cancelled_->FinalOf(job));
  SendRecords();
}

void JobNode::HandleMessage(const v1::AttachResponse& message) {
  if (!running()) return;
  if (message.has_welcome()) sender_->Rewind();
  if (message.has_command()) Receive(message.command());
  if (message.has_cancel()) Cancel(message.cancel());
  if (message.has_records_ack()) {
    sender_->HandleAcks(message.records_ack());
    RemoveReported();
  }
  SendRecords();
}

void JobNode::Receive(const v1::JobCommand& command) {
  const std::string& id = command.job();
  if (IsKnown(id)) return;
  auto folder = NodeJobFolder::Create(disk, kJobs, id, name_, command.command());
  if (!folder.ok()) {
    return EndWithoutRecords(id, FinalRecord(v1::JOB_OUTCOME_FAILED, "IO_ERROR", "not stored"));
  }
  Job& job = jobs_[id];
  job.folder = *std::move(folder);
  job.begin_by = clock.MonotonicNow() + FromProto(command.begin_within());
  job.lines = static_cast<int>(Chance(12));
  sender_->Add(id, *job.folder->log());
}

bool JobNode::IsKnown(const std::string& job) {
  if (jobs_.contains(job)) return true;
  if (cancelled_->Contains(job)) {
    EndWithoutRecords(job, CancelledBeforeStart());
    return true;
  }
  if (!finished_->Contains(job)) return false;
  sender_->AddRefusal(job, finished_->IsUnreadable(job)
                               ? FinalRecord(v1::JOB_OUTCOME_LOST, "RECORDS_DAMAGED", "")
                               : FinalRecord(v1::JOB_OUTCOME_LOST, "REPLAYED", ""));
  return true;
}

void JobNode::Cancel(const v1::JobCancel& cancel) {
  const auto& nodes = cancel.nodes();
  if (!nodes.empty() && std::ranges::find(nodes, name_) == nodes.end()) return;
  const auto found = jobs_.find(cancel.job());
  if (found == jobs_.end()) {
    if (!finished_->Contains(cancel.job())) EndWithoutRecords(cancel.job(), CancelledBeforeStart());
    return;
  }
  Job& job = found->second;
  if (job.ended) return;
  if (job.started) {
    job.cancelled = true;
    return;
  }
  job.ended = true;
  if (job.folder->log()->Append(CancelledBeforeStart()).ok()) return;
  EndWithoutRecords(cancel.job(), CancelledBeforeStart());
}

// It is reported when it is stored (Tick).
void JobNode::EndWithoutRecords(const std::string& job, v1::JobRecord final) {
  if (!cancelled_->Add(job, std::move(final)) || !cancelled_->IsStored(job)) return;
  sender_->AddRefusal(job, cancelled_->FinalOf(job));
}

// A command does a little at a time.
void JobNode::Run(const std::string& id, Job& job) {
  if (job.final && job.folder->log()->Append(*job.final).ok()) job.final.reset();
  if (job.ended || Chance(3) == 0) return;
  RecordOutbox& log = *job.folder->log();
  if (!job.started) {
    if (clock.MonotonicNow() < job.begin_by) return Begin(id, job);
    job.ended = true;
    const v1::JobRecord expired = FinalRecord(v1::JOB_OUTCOME_EXPIRED, "COMMAND_EXPIRED", "");
    if (!log.Append(expired).ok()) EndWithoutRecords(id, expired);
    return;
  }
  v1::JobRecord record;
  if (!job.stored_start) {
    record.mutable_started();
    job.stored_start = log.Append(record).ok();
    return;
  }
  Execution& execution = executions_[{id, name_}];
  if (job.lines > 0 && !job.cancelled) {
    const std::string line = absl::StrCat(name_, " line ", job.lines, "\n");
    record.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
    record.mutable_output()->set_data(line);
    if (!log.Append(record).ok()) return;  // the command waits for the disk
    execution.output += line;
    --job.lines;
    return;
  }
  execution.exited = true;
  job.ended = true;
  record = FinalRecord(job.cancelled ? v1::JOB_OUTCOME_CANCELLED : v1::JOB_OUTCOME_EXITED, "", "");
  record.mutable_final()->set_stdout_bytes(static_cast<int64_t>(execution.output.size()));
  if (!log.Append(record).ok()) job.final = record;
}

// The command starts only when its mark is durable.
void JobNode::Begin(const std::string& id, Job& job) {
  job.started = true;
  const ProcessMark nobody = {{.pid = 1 << 30, .start_ticks = 1, .boot_id = "another"}};
  if (!job.folder->NoteProcess(nobody).ok()) {
    job.ended = true;
    job.final = FinalRecord(v1::JOB_OUTCOME_FAILED, "COMMAND_NOT_STARTED", "");
    return;
  }
  Execution& execution = executions_[{id, name_}];
  if (++execution.starts == 1) execution.started = network_.now();
}

void JobNode::RemoveReported() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    Job& job = it->second;
    if (!job.ended || !job.folder->log()->final_acked()) {
      ++it;
      continue;
    }
    sender_->Remove(it->first);
    job.folder->SetDone().IgnoreError();
    finished_->Add(it->first, job.folder->not_after(), job.folder->process().has_value());
    it = jobs_.erase(it);
  }
}

void JobNode::SendRecords() {
  while (upstream_.attached()) {
    v1::AttachRequest message;
    if (!sender_->NextRecords(message.mutable_records())) return;
    if (disk.powered_off()) return;  // the machine is off
    upstream_.Send(std::move(message));
  }
}

}  // namespace muster::testing
