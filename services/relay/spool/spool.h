// Durable storage for the results of nodes while this relay is disconnected.
//
// An upload is verified as at the aggregator (common/upload/upload_session.h), with the signature
// of the node, so a stored result can be delivered without the node.
//
//   <folder>/spool.db   a row for each upload and result, and the bytes of results up to 64 KiB
//   <folder>/blobs/     the bytes of uploads and of larger results (common/blob/files).
//
// A row is written before its bytes are published and removed before its blob is. A start removes
// bytes without a row; a row without its bytes is reported upstream as lost.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_SPOOL_H_
#define MUSTER_SERVICES_RELAY_SPOOL_SPOOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/metrics.h"
#include "services/common/identity/certificate.h"
#include "services/common/upload/upload_pace.h"
#include "services/common/upload/upload_session.h"
#include "services/relay/spool/delivery_queue.h"
#include "services/relay/spool/spool_index.h"
#include "services/relay/spool/spool_quota.h"
#include "services/relay/spool/spool_storage.h"

namespace muster {

struct SpoolCounters;

struct SpoolOptions {
  std::string folder;                          // created if missing.
  int64_t quota_bytes = int64_t{10} << 30;     // of one node at most a quarter.
  int64_t max_entries = 10'000;                // of one node at most a quarter.
  absl::Duration ttl = absl::Hours(24);        // at most a week (spooled_proof.h).
  absl::Duration idle_after = absl::Hours(1);  // an upload without a stream is removed after it.
  std::string relay;                           // the name of this relay.
  std::string fleet;
  std::string fleet_ca_pem;  // the root of the certificates of signers.
  // The database failed: the relay must end (local_database.h).
  std::function<void(const absl::Status&)> on_fatal;
};

// A result to be delivered upstream.
struct SpoolDelivery {
  std::string id;
  v1::SubmitResultRequest header;  // without the bytes (spool_table.h)
  bool expired = false;            // report `why` instead of the result
  bool lost = false;               // expired, because its bytes are lost
  std::string why;
};

// Connects the parts that each own one invariant: SpoolStorage (what is durable), SpoolIndex (one
// entry for an attempt), SpoolQuota (the limits) and DeliveryQueue (the order). It has no lock of
// its own, and no part calls another one. Thread-safe; calls that may wait for the disk are marked.
class Spool : public ResultSink {
 public:
  // Opens the spool and recovers the entries of an earlier process; waits for the disk. `disk`
  // writes the bytes. DATA_LOSS (STORE_CORRUPT) if the database is damaged. `ops` has the blobs,
  // and `database_ops` is the disk of SQLite's VFS.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const SpoolOptions& options, Executor& disk,
                                                     const Clock& clock, Metrics& metrics,
                                                     FileOps& ops = PosixFileOps(),
                                                     FileOps& database_ops = PosixFileOps());

  // The streams of its uploads have ended, and `disk` is drained.
  ~Spool() override;

  // Uploads.

  // As ResultService.OpenUpload, for `opener`. SPOOL_FULL; TAKEN_OVER for other content of the same
  // attempt. Calls `opened` once, on `disk` or on the calling thread.
  using Opened = absl::AnyInvocable<void(absl::StatusOr<v1::OpenUploadResponse>)>;
  void OpenUpload(const v1::OpenUploadRequest& request, const UploadPeer& opener, Opened opened);

  // Returns whether `id` is an upload or a result of this spool.
  bool Has(std::string_view id) const { return index_.Find(id).has_value(); }
  // Returns the answer to the sender of a complete result; nothing for any other id.
  std::optional<v1::Spooled> Receipt(std::string_view id) const;
  bool IsComplete(std::string_view id, std::string_view node) const;
  // Returns an upload of `node`, for its chunks and its finish. UPLOAD_NOT_FOUND.
  absl::StatusOr<std::shared_ptr<UploadSession>> Find(std::string_view id,
                                                      std::string_view node) const;

  // ResultSink. The node must have signed the result: SIGNATURE_REQUIRED, INVALID_SIGNATURE.
  absl::Status CheckSignature(const VerifiedResult& verified) const override;
  // SPOOL_FULL.
  absl::Status Reserve(std::string_view id, int64_t size) override;
  void Release(std::string_view id) override;
  // Waits for the disk.
  void Commit(VerifiedResult verified, Done done) override;

  // Returns whether the spool has the complete result of this key and attempt, and may still
  // deliver it: no delivery has failed for another reason than the connection. Otherwise the node
  // delivers.
  bool Holds(const v1::ResultDescription& description) const;
  // Removes an upload whose node delivers to another service.
  void DiscardUpload(const v1::ResultDescription& description);

  // Ends stalled streams, closes the files of uploads without a stream, removes idle uploads, and
  // repeats failed removals; waits for the disk. Call it every few seconds.
  void Sweep();

  // Deliveries.

  // Returns the next result (DeliveryQueue); waits for the disk. End it with Finish or Requeue.
  std::optional<SpoolDelivery> Dequeue();
  // Removes a result whose `outcome` is "committed", "refused", "expired" or "lost"; waits for the
  // disk.
  void Finish(const SpoolDelivery& delivery, std::string_view outcome);
  // Puts back a result that cannot be delivered now because of `why`; its node waits for a
  // back-off, which is not shorter than the wait that `why` asks for.
  void Requeue(const SpoolDelivery& delivery, const absl::Status& why);
  // Ends the back-off of all nodes.
  void ResetBackoff() { queue_.ResetBackoff(); }
  // Returns the bytes; waits for the disk.
  absl::StatusOr<std::unique_ptr<ByteSource>> Read(const SpoolDelivery& delivery, int64_t offset);
  // Reads all bytes; marks the delivery as lost if they do not match their checksum. Waits for the
  // disk.
  void CheckContent(SpoolDelivery* delivery);
  // Calls `on_complete`, with no lock held, for each result that becomes complete. Set it before
  // the first upload.
  void set_on_complete(std::function<void()> on_complete) { on_complete_ = std::move(on_complete); }

  // Returns the number of complete results.
  int64_t waiting() const { return queue_.size(); }

 private:
  Spool(const SpoolOptions& options, Certificate root, std::unique_ptr<SpoolStorage> storage,
        Executor& disk, const Clock& clock, Metrics& metrics);

  absl::Status Recover();
  // Returns the pace of a new upload.
  UploadPace Pace() const;
  void RecoverEntry(const SpoolRow& row);
  std::shared_ptr<UploadSession> MakeSession(const std::string& id,
                                             const v1::OpenUploadRequest& request);
  absl::StatusOr<SpoolEntry> AddEntry(const v1::OpenUploadRequest& request);
  void Begin(const SpoolEntry& entry, const v1::OpenUploadRequest& request,
             const UploadPeer& opener, Opened opened);
  void Discard(const SpoolEntry& entry);
  absl::Status ReadDelivery(const SpoolEntry& entry, SpoolDelivery* delivery);
  void MarkLost(const absl::Status& why, SpoolDelivery* delivery) const;

  const SpoolOptions options_;
  const Certificate root_;
  const std::unique_ptr<SpoolStorage> storage_;
  Executor& disk_;
  const Clock& clock_;
  const std::unique_ptr<SpoolCounters> counters_;
  std::function<void()> on_complete_;
  SpoolQuota quota_;
  SpoolIndex index_;
  DeliveryQueue queue_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_SPOOL_H_
