// Stored bytes that cannot be read, for sealing.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_READ_FAILURES_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_READ_FAILURES_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/io.h"
#include "services/common/base/mutex.h"

namespace muster {

// The number of failed attempts to read a blob after which its bytes count as lost.
inline constexpr int kMaxReadFailures = 5;

// Counts failed reads of blobs over all attempts to seal a run, so that one unreadable blob (EIO)
// does not prevent the archive for ever. Thread-safe.
class ReadFailures {
 public:
  // Returns `status`, or DATA_LOSS with its reason if the blob could not be read kMaxReadFailures
  // times. Errors that do not concern the blob, such as a lack of memory or descriptors, do not
  // count.
  absl::Status Judge(const std::string& blob, const absl::Status& status);

  // Returns `source` with the same rule for its reads. This object must outlive it.
  std::unique_ptr<ByteSource> Watch(const std::string& blob, std::unique_ptr<ByteSource> source);

 private:
  Mutex mutex_;
  std::map<std::string, int> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_READ_FAILURES_H_
