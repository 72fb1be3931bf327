#include "services/relay/jobs/watch_source.h"

#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/relay/jobs/job_folder.h"

namespace muster {
namespace {

// The records of one response, in bytes.
constexpr size_t kAtOnce = 512 * 1024;

}  // namespace

JobWatchSource::JobWatchSource(JobBoard& board, const v1::WatchJobRequest& request)
    : board_(board),
      job_(request.job()),
      nodes_(request.nodes().begin(), request.nodes().end()),
      omit_output_(request.omit_output()) {}

JobWatchSource::~JobWatchSource() { board_.StopWatch(job_, watch_); }

absl::StatusOr<std::unique_ptr<JobWatchSource>> JobWatchSource::Open(
    JobBoard& board, FileOps& files, const v1::WatchJobRequest& request,
    std::function<void()> wake) {
  ASSIGN_OR_RETURN(const auto view, board.Get(request.job()));
  if (request.position() < 0 || request.position() > view.end) {
    return errors::InvalidPosition(request.position());
  }
  std::unique_ptr<JobWatchSource> source(new JobWatchSource(board, request));
  ASSIGN_OR_RETURN(source->reader_, JournalReader::Open(files, view.records_path));
  const absl::Status found = source->reader_->Seek(request.position(), view.end);
  if (ReasonOf(found) == "JOURNAL_POSITION") return errors::InvalidPosition(request.position());
  if (!found.ok()) return found;
  ASSIGN_OR_RETURN(source->watch_, board.Watch(request.job(), std::move(wake)));
  return source;
}

bool JobWatchSource::IsWanted(const v1::JobRecord& record) const {
  if (omit_output_ && (record.has_output() || record.has_cut())) return false;
  return nodes_.empty() || record.node().empty() || nodes_.contains(record.node());
}

// Adds records to the message, from the position on to `end`, until it is full.
absl::Status JobWatchSource::Read(int64_t end, v1::WatchJobResponse* message) {
  v1::JobRecord record;
  for (size_t bytes = 0; bytes < kAtOnce;) {
    std::string_view stored;
    ASSIGN_OR_RETURN(const auto found, reader_->Next(end, &stored));
    if (!found) break;
    RETURN_IF_ERROR(ParseRecord(stored, &record));
    if (!IsWanted(record)) continue;
    bytes += stored.size();
    message->add_records()->Swap(&record);
  }
  return absl::OkStatus();
}

absl::StatusOr<Pull> JobWatchSource::Next(v1::WatchJobResponse* message) {
  message->Clear();
  if (ended_) return Pull::kEnd;
  ASSIGN_OR_RETURN(const auto view, board_.Get(job_));
  RETURN_IF_ERROR(Read(view.end, message));
  message->set_position(reader_->position());
  ended_ = reader_->position() == view.end && view.job.state() != v1::JOB_STATE_RUNNING;
  message->set_complete(ended_);
  std::string job = view.job.SerializeAsString();
  const bool changed = job != sent_job_;
  if (changed || ended_) {
    sent_job_ = std::move(job);
    *message->mutable_job() = view.job;
  }
  if (message->records_size() > 0 || changed || ended_) return Pull::kMessage;
  return std::exchange(caught_up_, true) ? Pull::kWait : Pull::kMessage;
}

}  // namespace muster
