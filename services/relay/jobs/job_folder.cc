#include "services/relay/jobs/job_folder.h"

#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"
#include "services/common/rpc/message_text.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// The first byte of an entry of `job`; the rest is a serialised message unless it says otherwise.
enum Kind : char {
  kRequest = 'r',    // SubmitJobRequest without nodes
  kTargets = 't',    // names, a line each: those that it found
  kNodes = 'n',      // names, a line each: those that the request names
  kAccepted = 'a',   // Job: with this entry the job exists
  kCancelled = 'C',  // Unix microseconds (i64, little-endian), URI of who cancelled it
  kWithdrawn = 'w',  // nothing, as the next: the cancellation had no effect
  kSubmissionAudited = 's',
  kCancellationAudited = 'x',
  kAbandoned = 'b',  // names, a line each: of the end that follows, and of those without any; with
                     // no name it discards those since the last end
  kReopened = 'o',   // nothing
  kEnded = 'e',      // where the records end (i64, little-endian), Job
};

// A command has 128 KiB and a chain of 16 KiB (jobs.proto).
constexpr uint32_t kMaxEntry = uint32_t{256} << 10;
constexpr int64_t kMaxJob = int64_t{64} << 20;  // 50,000 names of 253 bytes, and as much again
constexpr size_t kNamesAtOnce = size_t{64} << 10;

std::string JobPath(const std::string& folder) { return folder + "/job"; }

std::string Entry(Kind kind, const google::protobuf::MessageLite& message) {
  return absl::StrCat(std::string(1, kind), message.SerializeAsString());
}

std::string EntryWithNumber(Kind kind, int64_t number) {
  std::string entry(1, kind);
  entry.append(reinterpret_cast<const char*>(&number), sizeof(number));
  return entry;
}

std::string CancelledEntry(const Cancellation& cancellation) {
  return EntryWithNumber(kCancelled, absl::ToUnixMicros(cancellation.at)) + cancellation.by;
}

// Adds the number of names of each appended entry to `written`.
absl::Status AppendNames(Journal& journal, Kind kind, std::span<const std::string> names,
                         size_t* written) {
  std::string entry(1, kind);
  size_t count = 0;
  for (const std::string& name : names) {
    entry += name;
    entry += '\n';
    ++count;
    if (entry.size() < kNamesAtOnce) continue;
    RETURN_IF_ERROR(journal.Append(entry));
    *written += std::exchange(count, 0);
    entry.resize(1);
  }
  if (count == 0) return absl::OkStatus();
  RETURN_IF_ERROR(journal.Append(entry));
  *written += count;
  return absl::OkStatus();
}

size_t HashOf(std::span<const std::string> names) {
  size_t hash = 0;
  for (const std::string& name : names) hash = absl::HashOf(hash, name);
  return hash;
}

struct Reading {
  StoredJob stored;
  bool accepted = false;
  std::optional<std::vector<std::string>> abandoned;  // of the end that follows; none: unchanged
};

// False if it is no entry.
bool ReadEntry(std::string_view entry, Reading* reading) {
  StoredJob* const stored = &reading->stored;
  const char kind = entry[0];
  std::string_view body = entry.substr(1);
  const auto parse = [&](google::protobuf::MessageLite& message) {
    return message.ParseFromArray(body.data(), static_cast<int>(body.size()));
  };
  const auto read_number = [&](int64_t& number) {
    if (body.size() < sizeof(number)) return false;
    std::memcpy(&number, body.data(), sizeof(number));
    body.remove_prefix(sizeof(number));
    return true;
  };
  int64_t cancelled_at = 0;
  switch (kind) {
    case kRequest:
      return parse(stored->request);
    case kTargets:
    case kNodes:
      for (const absl::string_view name : absl::StrSplit(ToAbsl(body), '\n', absl::SkipEmpty())) {
        stored->targets.emplace_back(name);
        if (kind == kNodes) stored->request.add_nodes(std::string(name));
      }
      return true;
    case kAccepted:
      reading->accepted = true;
      return parse(stored->job);
    case kCancelled:
      if (!read_number(cancelled_at)) return false;
      if (stored->cancelled) return true;
      stored->cancelled = true;
      stored->audit.cancelled_by = std::string(body);
      stored->audit.cancelled_at = absl::FromUnixMicros(cancelled_at);
      return true;
    case kWithdrawn:
      stored->cancelled = false;
      stored->audit.cancelled_by.clear();
      return true;
    case kSubmissionAudited:
      stored->audit.has_submission = true;
      return true;
    case kCancellationAudited:
      stored->audit.has_cancellation = true;
      return true;
    case kReopened:
      stored->reopened = true;
      return true;
    case kAbandoned:
      if (!reading->abandoned || body.empty()) reading->abandoned.emplace();
      for (const absl::string_view name : absl::StrSplit(ToAbsl(body), '\n', absl::SkipEmpty())) {
        reading->abandoned->emplace_back(name);
      }
      return true;
    case kEnded:
      if (!read_number(stored->records_end)) return false;
      if (reading->abandoned) stored->abandoned = *std::exchange(reading->abandoned, std::nullopt);
      stored->ended = true;
      stored->reopened = false;
      return parse(stored->job);
    default:
      return false;
  }
}

absl::Status Fill(FileOps& files, const std::string& path, const v1::SubmitJobRequest& request,
                  const v1::Job& job, const std::vector<std::string>& targets, int64_t max_records,
                  const std::optional<Cancellation>& cancellation,
                  std::unique_ptr<Journal>* journal, std::unique_ptr<Journal>* records) {
  RETURN_IF_ERROR(files.MakeFolder(path));
  ASSIGN_OR_RETURN(auto opened, Journal::Create(files, RecordsPath(path),
                                                {.max_record = uint32_t{64} << 10,
                                                 .max_unsynced = uint32_t{1} << 20,
                                                 .max_size = max_records}));
  *records = std::move(opened);
  ASSIGN_OR_RETURN(opened, Journal::Create(files, JobPath(path),
                                           {.max_record = kMaxEntry,
                                            .max_unsynced = uint32_t{1} << 20,
                                            .max_size = kMaxJob}));
  *journal = std::move(opened);
  absl::Status status = files.SyncFolder(ParentFolder(path));
  v1::SubmitJobRequest without_nodes = request;
  without_nodes.clear_nodes();
  if (status.ok()) status = (*journal)->Append(Entry(kRequest, without_nodes));
  const Kind names = request.nodes().empty() ? kTargets : kNodes;
  size_t written = 0;
  if (status.ok()) status = AppendNames(**journal, names, targets, &written);
  // Before the acceptance: a start never finds the job without its cancellation.
  if (status.ok() && cancellation) status = (*journal)->Append(CancelledEntry(*cancellation));
  if (status.ok()) status = (*journal)->Append(Entry(kAccepted, job));
  if (status.ok()) status = (*journal)->Sync();
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobFolder>> JobFolder::Create(
    FileOps& files, const std::string& path, const v1::SubmitJobRequest& request,
    const v1::Job& job, const std::vector<std::string>& targets, int64_t max_records,
    std::unique_ptr<Journal>* records, std::optional<Cancellation> cancellation) {
  std::unique_ptr<Journal> journal;
  const absl::Status status =
      Fill(files, path, request, job, targets, max_records, cancellation, &journal, records);
  if (status.ok()) {
    return std::unique_ptr<JobFolder>(new JobFolder(std::move(journal), std::move(cancellation)));
  }
  if (absl::IsAlreadyExists(status)) return errors::JobExists(job.job());
  journal.reset();
  records->reset();
  // Without `job` the folder is no job, even if the rest cannot be removed.
  files.Remove(JobPath(path)).IgnoreError();
  RemoveTree(files, path).IgnoreError();
  files.SyncFolder(ParentFolder(path)).IgnoreError();
  return status;
}

absl::StatusOr<StoredJob> JobFolder::Read(FileOps& files, const std::string& path) {
  Reading reading;
  const auto end = Journal::Read(files, JobPath(path), [&](std::string_view entry, int64_t) {
    return ReadEntry(entry, &reading) ? absl::OkStatus() : errors::JobDamaged(JobPath(path));
  });
  if (absl::IsNotFound(end.status())) return errors::JobUnfinished(path);
  if (!end.ok()) return end.status();
  if (!reading.accepted) return errors::JobUnfinished(path);
  return std::move(reading.stored);
}

absl::StatusOr<std::unique_ptr<JobFolder>> JobFolder::Open(FileOps& files,
                                                           const std::string& path) {
  Reading reading;
  ASSIGN_OR_RETURN(
      auto journal, Journal::Open(files, JobPath(path), [&](std::string_view entry, int64_t) {
        return ReadEntry(entry, &reading) ? absl::OkStatus() : errors::JobDamaged(JobPath(path));
      }));
  std::unique_ptr<JobFolder> folder(
      new JobFolder(std::move(journal), std::nullopt, reading.stored.abandoned.size()));
  if (reading.abandoned) {
    MutexLock lock(folder->mutex_);
    folder->names_ = {reading.abandoned->size(), HashOf(*reading.abandoned)};
  }
  return folder;
}

absl::Status JobFolder::Append(std::string_view entry) {
  RETURN_IF_ERROR(journal_->Append(entry));
  return journal_->Sync();
}

absl::StatusOr<std::optional<Cancellation>> JobFolder::MarkCancelled(Cancellation cancellation) {
  MutexLock lock(mutex_);
  if (ended_) return std::nullopt;
  if (!cancellation_) {
    RETURN_IF_ERROR(journal_->Append(CancelledEntry(cancellation)));
    cancellation_ = std::move(cancellation);
  }
  RETURN_IF_ERROR(journal_->Sync());
  cancellation_stored_ = true;
  return cancellation_;
}

absl::Status JobFolder::MarkAudited(bool cancellation) {
  MutexLock lock(mutex_);
  return Append(std::string(1, cancellation ? kCancellationAudited : kSubmissionAudited));
}

absl::Status JobFolder::MarkReopened() {
  MutexLock lock(mutex_);
  return Append(std::string(1, kReopened));
}

absl::Status JobFolder::MarkEnded(const v1::Job& job, int64_t records_end,
                                  const std::vector<std::string>& abandoned) {
  MutexLock lock(mutex_);
  if (cancellation_ && !cancellation_stored_) {
    RETURN_IF_ERROR(journal_->Append(std::string(1, kWithdrawn)));
    cancellation_.reset();
  }
  std::string entry = EntryWithNumber(kEnded, records_end) + job.SerializeAsString();
  if (entry != end_entry_) {
    // Each late end would add all names: with many of them the journal would be full soon.
    const bool many_less = abandoned_ > 0 && abandoned.size() <= abandoned_ / 2;
    if (abandoned.size() > abandoned_ || many_less || names_) {
      RETURN_IF_ERROR(WriteAbandoned(abandoned));
    }
    RETURN_IF_ERROR(journal_->Append(entry));
    end_entry_ = std::move(entry);
  }
  RETURN_IF_ERROR(journal_->Sync());
  ended_ = true;
  return absl::OkStatus();
}

absl::Status JobFolder::WriteAbandoned(const std::vector<std::string>& names) {
  const bool resumes = names_ && names_->count <= names.size() &&
                       names_->hash == HashOf(std::span(names).first(names_->count));
  if (!resumes) {
    RETURN_IF_ERROR(journal_->Append(std::string(1, kAbandoned)));
    names_ = {0, HashOf({})};
  }
  const absl::Status status =
      AppendNames(*journal_, kAbandoned, std::span(names).subspan(names_->count), &names_->count);
  if (!status.ok()) {
    names_->hash = HashOf(std::span(names).first(names_->count));
    return status;
  }
  abandoned_ = names.size();
  names_.reset();
  return absl::OkStatus();
}

std::string RecordsPath(const std::string& folder) { return folder + "/records"; }

absl::StatusOr<std::unique_ptr<Journal>> OpenRecords(
    FileOps& files, const std::string& folder,
    absl::FunctionRef<void(const v1::JobRecord&)> visit) {
  v1::JobRecord record;
  return Journal::Open(files, RecordsPath(folder), [&](std::string_view bytes, int64_t) {
    absl::Status status = ParseRecord(bytes, &record);
    if (status.ok()) visit(record);
    return status;
  });
}

absl::Status ParseRecord(std::string_view bytes, v1::JobRecord* record) {
  if (ParseCleaned(bytes, record)) {
    return absl::OkStatus();
  }
  return errors::JobDamaged("a record of a job");
}

v1::Job NewJob(const JobRequest& request, const std::string& submitter, absl::Time now) {
  v1::Job job;
  job.set_job(request.command.job());
  job.set_submitted_by(submitter);
  ToProto(now, job.mutable_submit_time());
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_action(request.command.action());
  *job.mutable_argv() = request.command.argv();
  *job.mutable_classes() = request.command.classes();
  job.set_image(request.command.container().image());
  job.set_discard_output(request.command.discard_output());
  ToProto(now + request.begin_within() + FromProto(request.command.time_limit()),
          job.mutable_deadline());
  return job;
}

JobState::Plan PlanOf(const JobRequest& request, const v1::Job& job,
                      std::vector<std::string> targets, int64_t max_output) {
  const absl::Time submitted = FromProto(job.submit_time());
  JobState::Plan plan;
  plan.job = job;
  plan.targets = std::move(targets);
  plan.parallel = request.message.parallel();
  plan.wait = request.wait();
  plan.wait_until = submitted + plan.wait;
  plan.begin_until = submitted + request.begin_within();
  plan.time_limit = FromProto(request.command.time_limit());
  plan.max_output = max_output;
  return plan;
}

}  // namespace muster
