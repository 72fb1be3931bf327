#include "services/relay/jobs/job_board.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/common/jobs/job_record.h"
#include "services/relay/jobs/audit_records.h"
#include "services/relay/jobs/job_folder.h"
#include "services/relay/jobs/job_loader.h"

namespace muster {
namespace {

// The most targets of a job that are looked up in the register.
constexpr size_t kMaxExplained = 16;

}  // namespace

JobBoard::JobBoard(Options options, const Parts& parts)
    : options_(std::move(options)),
      files_(parts.files),
      topology_(parts.topology),
      fleet_{parts.topology, parts.dispatcher, parts.clock},
      table_(
          {options_.max_running, options_.retention, options_.max_kept, options_.max_unaudited}) {}

absl::StatusOr<std::unique_ptr<JobBoard>> JobBoard::Open(Options options, const Parts& parts) {
  std::unique_ptr<JobBoard> board(new JobBoard(std::move(options), parts));
  RETURN_IF_ERROR(LoadJobs(parts.files, board->options_.folder, board->options_.max_output,
                           board->fleet_, board->table_));
  board->late_ = std::make_unique<LateJobs>(
      LateJobs::Parts{parts.clock, board->table_, board->inbox_, parts.timers, parts.late_executor,
                      [b = board.get()](const std::string& id, const std::string& folder) {
                        return b->Reopen(id, folder);
                      }});
  board->writer_ = std::make_unique<JobWriter>(JobWriter::Parts{
      parts.files, parts.clock, parts.dispatcher, board->table_, board->watchers_, board->inbox_,
      parts.timers, parts.executor, board->options_.verify, board->late_.get()});
  return board;
}

absl::StatusOr<JobChange> JobBoard::Submit(JobRequest request, const std::string& submitter) {
  const std::string id = request.command.job();
  const auto find_same = [&]() -> absl::StatusOr<JobChange> {
    ASSIGN_OR_RETURN(v1::Job job, FindSame(id, request));
    return JobChange{std::move(job), /*changed=*/false};
  };
  if (table_.Find(id).ok()) return find_same();
  if (request.targets == nullptr && topology_.Nodes().empty()) return errors::NoNodeAttached();
  // Blocks, so the id is not reserved yet.
  const RunningJob::Explanations explanations = Explain(request);
  const absl::Status reserved = table_.Reserve(id, submitter);
  if (absl::IsAlreadyExists(reserved)) return find_same();
  RETURN_IF_ERROR(reserved);
  auto created = Create(id, std::move(request), submitter, explanations, std::nullopt);
  if (!created.ok()) {
    table_.Abandon(id);
    return created.status();
  }
  return JobChange{*std::move(created), /*changed=*/true};
}

// Returns the job if it was submitted with the same command.
absl::StatusOr<v1::Job> JobBoard::FindSame(const std::string& id, const JobRequest& request) const {
  ASSIGN_OR_RETURN(const auto found, table_.FindStored(id));
  ASSIGN_OR_RETURN(const auto stored, JobFolder::Read(files_, found.folder));
  // The signed bytes include the nodes.
  const bool same = stored.request.command().command() == request.message.command().command();
  if (!same) return errors::JobExists(id);
  return found.Describe();
}

// Asks the register about targets that the topology does not contain.
RunningJob::Explanations JobBoard::Explain(const JobRequest& request) const {
  if (!options_.explain || request.targets == nullptr) return {};
  std::vector<std::string> unknown;
  for (const std::string& node : request.targets->names()) {
    if (node == topology_.name() || topology_.Find(node)) continue;
    unknown.push_back(node);
    if (unknown.size() == kMaxExplained) break;
  }
  if (unknown.empty()) return {};
  return options_.explain(unknown);
}

absl::StatusOr<v1::Job> JobBoard::Create(const std::string& id, JobRequest request,
                                         const std::string& submitter,
                                         const RunningJob::Explanations& explanations,
                                         const std::optional<Cancellation>& cancellation) {
  JobTable::Entry entry;
  entry.folder = absl::StrCat(options_.folder, "/", id);
  entry.job = NewJob(request, submitter, fleet_.clock.Now());
  std::vector<std::string> targets =
      request.targets == nullptr ? topology_.Nodes() : request.targets->names();
  JobState::Plan plan = PlanOf(request, entry.job, std::move(targets), options_.max_output);
  std::unique_ptr<Journal> log;
  ASSIGN_OR_RETURN(auto folder,
                   JobFolder::Create(files_, entry.folder, request.message, entry.job, plan.targets,
                                     JobState::MaxLogSize(plan), &log, cancellation));
  JobState state(std::move(plan));
  if (cancellation) {
    state.SetCancelled();
    entry.audit.cancelled_by = cancellation->by;
    entry.audit.cancelled_at = cancellation->at;
  }
  const auto job = std::make_shared<RunningJob>(fleet_, std::move(request), std::move(state),
                                                std::move(folder), std::move(log));
  entry.running = job;
  // Before the command is sent: records that arrive must find the job.
  table_.Insert(id, std::move(entry));
  job->Start(explanations);
  inbox_.Wake();
  if (options_.on_unaudited) options_.on_unaudited();
  return job->Describe();
}

absl::StatusOr<JobView> JobBoard::Get(const std::string& job) const {
  ASSIGN_OR_RETURN(const auto entry, table_.Find(job));
  // The end first: it may only grow until the job is described.
  const int64_t end = entry.running == nullptr ? entry.end : entry.running->end();
  return JobView{entry.Describe(), RecordsPath(entry.folder), end};
}

std::vector<v1::Job> JobBoard::List(const std::string& before, size_t limit) const {
  std::vector<v1::Job> jobs;
  for (const JobTable::Entry& entry : table_.List(before, limit)) {
    jobs.push_back(entry.Describe());
  }
  return jobs;
}

absl::StatusOr<JobChange> JobBoard::Cancel(const std::string& job, const std::string& by) {
  ASSIGN_OR_RETURN(const auto entry, table_.Find(job));
  if (entry.running == nullptr) return JobChange{entry.job, /*changed=*/false};
  ASSIGN_OR_RETURN(const auto stored, entry.running->Cancel(CancellationBy(by)));
  inbox_.Wake();
  if (stored) {
    table_.SetCancelled(job, stored->by, stored->at);
    if (options_.on_unaudited) options_.on_unaudited();
  }
  return JobChange{entry.running->Describe(), stored.has_value()};
}

absl::StatusOr<JobChange> JobBoard::CancelOrCreate(JobRequest request, const std::string& submitter,
                                                   const std::string& by) {
  const std::string id = request.command.job();
  const absl::Status reserved = table_.Reserve(id, submitter);
  if (absl::IsAlreadyExists(reserved)) {
    ASSIGN_OR_RETURN(v1::Job job, FindSame(id, request));
    auto cancelled = Cancel(id, by);
    // It ended so long ago that only its audit records are left.
    if (absl::IsNotFound(cancelled.status())) return JobChange{std::move(job), /*changed=*/false};
    return cancelled;
  }
  RETURN_IF_ERROR(reserved);
  auto created = Create(id, std::move(request), submitter, {}, CancellationBy(by));
  if (!created.ok()) {
    table_.Abandon(id);
    return created.status();
  }
  return JobChange{*std::move(created), /*changed=*/true};
}

// The time is as it is stored: the record of the cancellation has the same one after a restart.
Cancellation JobBoard::CancellationBy(const std::string& by) const {
  return {by, absl::FromUnixMicros(absl::ToUnixMicros(fleet_.clock.Now()))};
}

std::vector<v1::RecordJobRequest> JobBoard::Unaudited(size_t limit) const {
  std::vector<v1::RecordJobRequest> records;
  for (const JobTable::Entry& entry : table_.Unaudited(limit)) {
    std::ranges::move(MissingAuditRecords(entry), std::back_inserter(records));
  }
  return records;
}

absl::Status JobBoard::Reopen(const std::string& id, const std::string& folder) {
  // Without the lock: the writer waits for it, to mark that another job is audited.
  ASSIGN_OR_RETURN(auto late, LateJob::Read(files_, folder, options_.max_output));
  MutexLock lock(folders_);
  ASSIGN_OR_RETURN(const auto job, std::move(late).Open(files_, fleet_));
  table_.Reopen(id, job);
  // It may have been removed meanwhile.
  return table_.FindRunning(id) == job ? absl::OkStatus() : errors::JobNotFound(id);
}

absl::Status JobBoard::MarkAudited(const v1::RecordJobRequest& record) {
  MutexLock lock(folders_);
  const auto entry = table_.MarkAudited(record.job(), record.cancelled());
  if (!entry) return absl::OkStatus();  // it was removed
  if (entry->running != nullptr) return entry->running->MarkAudited(record.cancelled());
  ASSIGN_OR_RETURN(const auto folder, JobFolder::Open(files_, entry->folder));
  return folder->MarkAudited(record.cancelled());
}

absl::StatusOr<uint64_t> JobBoard::Watch(const std::string& job, std::function<void()> wake) {
  RETURN_IF_ERROR(table_.Find(job).status());
  return watchers_.Add(job, std::move(wake));
}

void JobBoard::Receive(v1::JobRecords records, Done done) {
  auto& all = *records.mutable_records();
  all.erase(std::remove_if(
                all.begin(), all.end(),
                [this](const v1::JobRecord& record) {
                  const absl::Status status = ValidateJobRecord(record);
                  if (status.ok()) return false;
                  NoteRefused(record, status);
                  LogLimited(LogLevel::kWarning, "a record of a job is dropped", record.node(),
                             {{"job", record.job()}, {"node", record.node()}, {"error", status}});
                  return true;
                }),
            all.end());
  inbox_.Add({std::move(records), std::move(done)});
}

void JobBoard::NoteRefused(const v1::JobRecord& record, const absl::Status& why) {
  if (const auto job = table_.FindRunning(record.job()); job != nullptr) {
    job->NoteDropped(record.node(), why);
  }
}

}  // namespace muster
