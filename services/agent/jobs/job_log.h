// The log of a running job, as its process writes it.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_LOG_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_LOG_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/record_outbox.h"

namespace muster {

// Repeats a write that fails, such as on a full disk, with a back-off, until the agent stops: the
// next process of the agent then follows a container, and reports another command as lost. Not
// thread-safe; calls block on the disk.
class JobLog {
 public:
  struct Options {
    RecordOutbox& outbox;  // outlives this
    std::string job;
    std::function<void()> on_records;          // is called after each stored record
    std::function<bool()> stops;               // whether the agent does
    std::function<void(absl::Duration)> wait;  // for at most this time, or a stop
  };

  explicit JobLog(Options options) : options_(std::move(options)) {}

  // Returns whether the record is stored, not yet durably. An invalid one never is.
  bool Append(const v1::JobRecord& record);
  // Returns whether all records are durable.
  bool Sync();

  // Adds the record of the start, which StoreStart or FinishStart stores.
  void SetStart(absl::Time time);
  // Tries to store it, and does not wait: output may be stored before it. Returns the time of the
  // next call; `now` is monotonic.
  absl::Duration StoreStart(absl::Duration now);
  void FinishStart();

 private:
  bool Repeat(absl::FunctionRef<absl::Status()> write);

  const Options options_;
  std::optional<v1::JobRecord> start_;  // if it is not stored yet
  absl::Duration store_start_at_;       // monotonic
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_LOG_H_
