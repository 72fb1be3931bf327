#include "services/relay/jobs/watch_source.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/relay/jobs/record_log.h"

namespace muster {
namespace {

// Of one message: a serialised record adds little to what it holds.
constexpr int64_t kAtOnce = 512 * 1024;

}  // namespace

JobWatchSource::JobWatchSource(JobBoard& board, const v1::WatchJobRequest& request)
    : board_(board),
      job_(request.job()),
      nodes_(request.nodes().begin(), request.nodes().end()),
      omit_output_(request.omit_output()),
      position_(request.position()) {}

JobWatchSource::~JobWatchSource() { board_.StopWatch(job_, watch_); }

absl::StatusOr<std::unique_ptr<JobWatchSource>> JobWatchSource::Open(
    JobBoard& board, FileOps& files, const v1::WatchJobRequest& request,
    std::function<void()> wake) {
  ASSIGN_OR_RETURN(const auto view, board.Get(request.job()));
  if (request.position() < 0 || request.position() > view.end) {
    return errors::InvalidPosition(request.position());
  }
  std::unique_ptr<JobWatchSource> source(new JobWatchSource(board, request));
  ASSIGN_OR_RETURN(source->file_, files.Open(view.records_path, OpenMode::kRead));
  ASSIGN_OR_RETURN(source->watch_, board.Watch(request.job(), std::move(wake)));
  return source;
}

bool JobWatchSource::Wanted(const v1::JobRecord& record) const {
  if (omit_output_ && (record.has_output() || record.has_cut())) return false;
  return nodes_.empty() || record.node().empty() || nodes_.contains(record.node());
}

absl::StatusOr<Pull> JobWatchSource::Next(v1::WatchJobResponse* message) {
  message->Clear();
  if (ended_) return Pull::kEnd;
  ASSIGN_OR_RETURN(const auto view, board_.Get(job_));
  while (position_ < view.end && message->records_size() == 0) {
    ASSIGN_OR_RETURN(auto read, ReadRecords(*file_, position_, view.end, kAtOnce));
    position_ = read.position;
    for (v1::JobRecord& record : read.records) {
      if (Wanted(record)) *message->add_records() = std::move(record);
    }
  }
  message->set_position(position_);
  ended_ = position_ == view.end && view.job.state() != v1::JOB_STATE_RUNNING;
  std::string job = view.job.SerializeAsString();
  const bool changed = job != told_;
  if (changed || ended_) {
    told_ = std::move(job);
    *message->mutable_job() = view.job;
  }
  if (message->records_size() > 0 || changed || ended_) return Pull::kMessage;
  return std::exchange(caught_up_, true) ? Pull::kWait : Pull::kMessage;
}

}  // namespace muster
