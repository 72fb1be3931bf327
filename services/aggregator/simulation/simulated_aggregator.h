// The parts of the aggregator that store results, over one simulated disk: one life of its process.
#ifndef MUSTER_SERVICES_AGGREGATOR_SIMULATION_SIMULATED_AGGREGATOR_H_
#define MUSTER_SERVICES_AGGREGATOR_SIMULATION_SIMULATED_AGGREGATOR_H_

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/aggregator/runs/authorities.h"
#include "services/aggregator/runs/runs.h"
#include "services/aggregator/uploads/result_committer.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/revocation.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/store/sqlite/sqlite_store.h"

namespace muster::testing {

// Not thread-safe. Calls reach the disk in an order that depends on the caller alone: each method
// returns when no other thread has work, and bytes of uploads wait for the store's thread.
class SimulatedAggregator {
 public:
  // Uploads expire after this time.
  static constexpr absl::Duration kExpiry = absl::Seconds(50);

  // Starts on `disk`, where a SimulatedVfs (store/sqlite) must be in place.
  static absl::StatusOr<std::unique_ptr<SimulatedAggregator>> Start(SimulatedDisk& disk,
                                                                    FakeClock& clock);
  ~SimulatedAggregator();
  SimulatedAggregator(const SimulatedAggregator&) = delete;

  SqliteStore& store() { return *store_; }
  BlobStore& blobs() { return *blobs_; }
  Uploads& uploads() { return *uploads_; }

  // Returns whether the store has stopped because of the disk: the process must end.
  bool failed() const { return failed_; }

  absl::StatusOr<OpenedUpload> Open(const UploadRecord& upload, const UploadPeer& peer);
  absl::StatusOr<UploadAttachment> Attach(UploadSession& session, int64_t epoch,
                                          const UploadPeer& peer);
  absl::StatusOr<UploadAck> Append(UploadSession& session, const UploadAttachment& attachment,
                                   UploadChunk chunk);
  // Ends the stream, and the upload if it succeeds, as UploadHandler does.
  absl::StatusOr<ResultRecord> Complete(UploadSession& session, const UploadAttachment& attachment,
                                        const UploadFinish& finish);
  void Detach(UploadSession& session, const UploadAttachment& attachment);
  absl::StatusOr<ResultRecord> Commit(VerifiedResult verified);
  absl::Status Cancel(const std::string& run);
  absl::Status Delete(const std::string& run);
  absl::Status TimeOut(const std::string& run);
  // Builds the archive of a run without a pending pair, and ends its uploads as Lifecycle does.
  // Fails with DATA_LOSS if a stored result is damaged.
  absl::Status Seal(const std::string& run);
  void SweepUploads();

  // Waits until no thread has work.
  void Settle();

 private:
  SimulatedAggregator(SimulatedDisk& disk, FakeClock& clock);
  absl::Status Begin();

  template <typename T>
  T OnStrand(UploadSession& session, const std::function<T()>& work);

  SimulatedDisk& disk_;
  FakeClock& clock_;
  Metrics metrics_;
  OpenStreams streams_{metrics_};
  RevocationList revocations_;
  std::atomic<bool> failed_ = false;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<BlobStore> blobs_;
  std::optional<Authorities> authorities_;
  std::optional<ResultCommitter> committer_;
  std::optional<Uploads> uploads_;
  std::optional<Runs> runs_;
  Executor work_{{"disk", 1, 1000}};  // last: its tasks use the members above
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_SIMULATION_SIMULATED_AGGREGATOR_H_
