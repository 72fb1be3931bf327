// Stored bytes that cannot be read.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERIFY_READ_FAILURES_H_
#define MUSTER_SERVICES_AGGREGATOR_VERIFY_READ_FAILURES_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/io.h"
#include "services/common/base/mutex.h"

namespace muster {

// The number of failed attempts to read a blob after which its bytes count as lost.
inline constexpr int kMaxReadFailures = 5;

// Failures of one blob within this time count as one: a disk that is reset or attached again reads
// the blob later.
inline constexpr absl::Duration kReadFailureSpacing = absl::Minutes(1);

// Counts failed reads of blobs over all attempts to seal a run and all verifications. So one
// unreadable blob (EIO) does not prevent the archive for ever, and its result is requested from its
// node again. Thread-safe.
class ReadFailures {
 public:
  // `clock` must outlive this object.
  explicit ReadFailures(const Clock& clock) : clock_(clock) {}

  // Returns `status`, or DATA_LOSS with its reason if the blob could not be read kMaxReadFailures
  // times. Errors that do not concern the blob, such as a lack of memory or descriptors, do not
  // count.
  absl::Status Judge(const std::string& blob, const absl::Status& status);

  // Forgets the failed reads of a blob that was read whole.
  void Forget(const std::string& blob);

  // Returns `source` with the same rule for its reads. This object must outlive it.
  std::unique_ptr<ByteSource> Watch(const std::string& blob, std::unique_ptr<ByteSource> source);

 private:
  struct Count {
    int failures = 0;
    absl::Duration next;  // monotonic: earlier failures do not count
  };

  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Count> counts_ ABSL_GUARDED_BY(mutex_);  // by blob
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERIFY_READ_FAILURES_H_
