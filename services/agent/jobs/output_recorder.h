// What a command prints, as records of its job.
#ifndef MUSTER_SERVICES_AGENT_JOBS_OUTPUT_RECORDER_H_
#define MUSTER_SERVICES_AGENT_JOBS_OUTPUT_RECORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/record_outbox.h"
#include "services/agent/jobs/spool_quota.h"

namespace muster {

// Gathers bytes into records of at most 32 KiB; what comes in small pieces waits for up to 100 ms
// for more. Keeps at most `max_output` bytes and as much disk besides, as far as the quota of all
// jobs and the disk go; of the rest, bytes are counted and a Cut record tells that they are
// missing: one where it begins, one at the end with all that followed. Memory: two records. Not
// thread-safe. Times are of Clock::MonotonicNow.
class OutputRecorder {
 public:
  // Both outlive it. `keep`: false counts only, and cuts nothing.
  OutputRecorder(RecordOutbox& log, SpoolQuota& quota, bool keep, int64_t max_output);

  // True if a record was added to the log.
  bool Add(v1::JobStream stream, std::string_view data, absl::Duration now);

  // When what waits is to be flushed: InfiniteDuration if nothing does.
  absl::Duration flush_at() const;
  bool Flush(absl::Duration now);

  // Everything is here: flushes, and says how much was cut at the end.
  void Finish();

  int64_t bytes(v1::JobStream stream) const { return Of(stream).total; }
  // What it took of the quota.
  int64_t spent() const { return spent_; }

 private:
  struct Stream {
    std::string waiting;  // at most one record
    absl::Duration since;
    int64_t total = 0;
  };

  Stream& Of(v1::JobStream stream) { return streams_[stream == v1::JOB_STREAM_STDERR ? 1 : 0]; }
  const Stream& Of(v1::JobStream stream) const {
    return streams_[stream == v1::JOB_STREAM_STDERR ? 1 : 0];
  }
  void Record(v1::JobStream stream, absl::Duration now);
  bool KeepRecord(v1::JobStream stream, std::string* data);
  void AppendCut(int64_t bytes);

  RecordOutbox& log_;
  SpoolQuota& quota_;
  const bool keep_;
  const int64_t max_output_;
  std::array<Stream, 2> streams_;
  int64_t kept_ = 0;                                     // bytes of output
  int64_t spent_ = 0;                                    // bytes of disk
  bool cutting_ = false;                                 // nothing more is kept
  int64_t cut_ = 0;                                      // bytes since the last Cut record
  absl::Duration recorded_ = -absl::InfiniteDuration();  // when the last record was made
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_OUTPUT_RECORDER_H_
