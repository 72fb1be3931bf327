// Reads a run's results for the archive, in order, one at a time.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_ARCHIVE_CURSOR_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_ARCHIVE_CURSOR_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/aggregator/verify/read_failures.h"
#include "services/common/archive/archived_result.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// The error with which the build of an archive ends while the service stops.
inline absl::Status BuildCancelled() { return absl::CancelledError("the aggregator is stopping"); }

// Not thread-safe. Holds one page of rows, without bodies.
class ArchiveCursor : public ResultCursor {
 public:
  // `failures` and `stopped` must outlive this object and its sources. Once `stopped` is true, rows
  // and bytes fail with BuildCancelled.
  ArchiveCursor(StateStore& store, BlobStore& blobs, std::string run, ReadFailures& failures,
                const std::atomic<bool>& stopped);

  absl::StatusOr<bool> Next(ArchivedResult& result) override;
  absl::StatusOr<std::unique_ptr<ByteSource>> Open() override;
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenPartial() override;

 private:
  absl::Status NextPage();
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenBlob(const std::string& blob);

  StateStore& store_;
  BlobStore& blobs_;
  ReadFailures& failures_;
  const std::atomic<bool>& stopped_;
  ResultFilter filter_;
  Page<ResultRecord> page_;
  size_t position_ = 0;  // of the next row in page_
  bool begun_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_ARCHIVE_CURSOR_H_
