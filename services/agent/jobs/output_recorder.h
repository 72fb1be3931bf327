// The output of a command, as records of its job.
#ifndef MUSTER_SERVICES_AGENT_JOBS_OUTPUT_RECORDER_H_
#define MUSTER_SERVICES_AGENT_JOBS_OUTPUT_RECORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/docker/daemon_log.h"
#include "services/agent/jobs/record_outbox.h"
#include "services/agent/jobs/spool_quota.h"

namespace muster {

// Joins bytes to records of at most 32 KiB; small pieces wait for up to 100 ms for more. Stores at
// most `max_output` bytes and twice as much disk space, within the quota of all jobs. Counts the
// rest, and reports it by two Cut records: where it begins, and at the end. Memory: two records.
// Not thread-safe. Times are of Clock::MonotonicNow.
class OutputRecorder {
 public:
  // Both outlive it. Without `keep` it only counts. If the log has output of the command already,
  // Add expects the whole output again, and stores what comes after it.
  OutputRecorder(RecordOutbox& log, SpoolQuota& quota, bool keep, int64_t max_output);

  // Returns true if it added a record to the log.
  bool Add(v1::JobStream stream, std::string_view data, absl::Duration now);

  // Returns the time of the next flush: InfiniteDuration if no bytes wait.
  absl::Duration flush_at() const;
  bool Flush(absl::Duration now);

  // Flushes. Returns the record of the bytes that were cut since the last one, if any.
  std::optional<v1::JobRecord> Finish();

  // Returns whether the output that came again did not begin with the stored output.
  bool missing() const { return streams_[0].stored.missing() || streams_[1].stored.missing(); }

  int64_t bytes(v1::JobStream stream) const {
    return Of(stream).total + Of(stream).stored.absent();
  }
  // Returns the quota that it uses.
  int64_t spent() const { return spent_; }

 private:
  struct Stream {
    std::string waiting;  // at most one record
    absl::Duration since;
    int64_t total = 0;
    ReceivedBytes stored;  // they come again, and the log has them already
  };

  Stream& Of(v1::JobStream stream) { return streams_[stream == v1::JOB_STREAM_STDERR ? 1 : 0]; }
  const Stream& Of(v1::JobStream stream) const {
    return streams_[stream == v1::JOB_STREAM_STDERR ? 1 : 0];
  }
  void Record(v1::JobStream stream, absl::Duration now);
  bool KeepRecord(v1::JobStream stream, std::string* data);
  void AppendCut(int64_t bytes);
  void ReserveCut();

  RecordOutbox& log_;
  SpoolQuota& quota_;
  const bool keep_;
  const int64_t max_output_;
  std::array<Stream, 2> streams_;
  int64_t kept_ = 0;                                     // bytes of output
  int64_t spent_ = 0;                                    // bytes of disk
  bool cutting_ = false;                                 // nothing more is kept
  int64_t cut_ = 0;                                      // bytes without a Cut record
  absl::Duration recorded_ = -absl::InfiniteDuration();  // when the last record was made
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_OUTPUT_RECORDER_H_
