// The stream of WatchJob: a job's records as they become durable.
#ifndef MUSTER_SERVICES_RELAY_JOBS_WATCH_SOURCE_H_
#define MUSTER_SERVICES_RELAY_JOBS_WATCH_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/file_ops.h"
#include "services/common/journal/journal_reader.h"
#include "services/common/rpc/stream.h"
#include "services/relay/jobs/job_board.h"

namespace muster {

// Reads the file at its own rate, so a slow watcher delays no other. Not thread-safe.
class JobWatchSource : public StreamSource<v1::WatchJobResponse> {
 public:
  // `wake` is called when there may be more. The errors of WatchJob.
  static absl::StatusOr<std::unique_ptr<JobWatchSource>> Open(JobBoard& board, FileOps& files,
                                                              const v1::WatchJobRequest& request,
                                                              std::function<void()> wake);
  ~JobWatchSource() override;

  absl::StatusOr<Pull> Next(v1::WatchJobResponse* message) override;

 private:
  JobWatchSource(JobBoard& board, const v1::WatchJobRequest& request);

  absl::Status Read(int64_t end, v1::WatchJobResponse* message);
  bool IsWanted(const v1::JobRecord& record) const;

  JobBoard& board_;
  const std::string job_;
  const std::set<std::string> nodes_;
  const bool omit_output_;
  uint64_t watch_ = 0;
  std::unique_ptr<JournalReader> reader_;
  std::string sent_job_;    // the job as it was sent last, serialised
  bool caught_up_ = false;  // the first records and the response after them were sent
  bool ended_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_WATCH_SOURCE_H_
