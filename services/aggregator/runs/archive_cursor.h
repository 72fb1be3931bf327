// Reads a run's results for the archive, in order, one at a time.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_ARCHIVE_CURSOR_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_ARCHIVE_CURSOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/aggregator/runs/read_failures.h"
#include "services/common/archive/archived_result.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// Not thread-safe. Holds one page of rows, without bodies.
class ArchiveCursor : public ResultCursor {
 public:
  // `failures` must outlive this object and its sources.
  ArchiveCursor(StateStore& store, BlobStore& blobs, std::string run, ReadFailures& failures);

  absl::StatusOr<bool> Next(ArchivedResult& result) override;
  absl::StatusOr<std::unique_ptr<ByteSource>> Open() override;
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenPartial() override;

 private:
  absl::Status NextPage();
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenBlob(const std::string& blob);

  StateStore& store_;
  BlobStore& blobs_;
  ReadFailures& failures_;
  ResultFilter filter_;
  Page<ResultRecord> page_;
  size_t position_ = 0;  // of the next row in page_
  bool begun_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_ARCHIVE_CURSOR_H_
