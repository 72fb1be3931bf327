// What a relay takes for who is above it while it has no way up: bounded, durable, in order.
//
// An upload is verified as the aggregator would (common/upload/upload_session.h), and so is
// the node's signature: what was taken can be delivered without the node. Each node's results are
// handed out in the order in which they were complete, one at a time; an entry is gone only when it
// was dealt with. Everything survives a kill at any point: spool_entry.h tells how it lies on the
// disk.
#ifndef MUSTER_SERVICES_RELAY_SPOOL_SPOOL_H_
#define MUSTER_SERVICES_RELAY_SPOOL_SPOOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/blob/blob_store.h"
#include "services/common/identity/certificate.h"
#include "services/common/upload/upload_session.h"
#include "services/relay/spool/spool_entry.h"

namespace muster {

struct SpoolOptions {
  std::string folder;                          // made if missing
  int64_t quota_bytes = int64_t{10} << 30;     // of a single node at most a quarter
  int64_t max_entries = 10'000;                // of a single node at most a quarter
  absl::Duration ttl = absl::Hours(24);        // at most a week (spooled_proof.h)
  absl::Duration idle_after = absl::Hours(1);  // an upload that nobody goes on with is forgotten
  std::string relay;                           // our name
  std::string fleet;
  std::string fleet_ca_pem;  // what signatures have to lead to
};

// One result on its way out.
struct SpoolDelivery {
  std::string id;
  v1::SubmitResultRequest header;  // spool_entry.h
  bool expired = false;            // its time is over, or its bytes are lost: say so instead
  bool lost = false;               // the latter
  std::string why;                 // if so
};

// Thread-safe. What may wait for the disk says so.
class Spool : public ResultSink {
 public:
  // Takes over what an earlier life left; waits for the disk. `disk` is where bytes are written.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const SpoolOptions& options, Executor& disk,
                                                     const Clock& clock, Metrics& metrics,
                                                     FileOps& ops = PosixFileOps());

  // The uploads in it must have ended, and `disk` have been drained.
  ~Spool() override;

  // In.

  // As ResultService.OpenUpload, for `opener`. SPOOL_FULL; TAKEN_OVER for another content of the
  // same attempt. `opened` is called once, on `disk` or at once.
  using Opened = absl::AnyInvocable<void(absl::StatusOr<v1::OpenUploadResponse>)>;
  void OpenUpload(const v1::OpenUploadRequest& request, const UploadPeer& opener, Opened opened);

  // Whether `id` is an upload of this spool. Of a result that is complete, what its sender is told.
  bool Has(std::string_view id) const;
  std::optional<v1::Spooled> Receipt(std::string_view id) const;
  bool IsComplete(std::string_view id, std::string_view node) const;
  // Of an upload of `node` that is not complete: for chunks and the finish. UPLOAD_NOT_FOUND.
  absl::StatusOr<std::shared_ptr<UploadSession>> Find(std::string_view id,
                                                      std::string_view node) const;
  // Every result has to be signed by its node. SIGNATURE_REQUIRED, INVALID_SIGNATURE.
  absl::Status CheckSignature(const VerifiedResult& verified) const override;
  // What an upload's session gives when its finish came: its file is written, then it is complete.
  void Commit(VerifiedResult verified, Done done) override;
  // To be asked before bytes up to `end` are appended. SPOOL_FULL.
  absl::Status Reserve(std::string_view id, int64_t end);

  // Whether the result of this key and attempt is here, complete.
  bool Holds(const v1::ResultDescription& description) const;
  // Forgets an upload that is not complete: its node delivers to somebody else.
  void DiscardUpload(const v1::ResultDescription& description);

  // Ends uploads that stand still, forgets those nobody goes on with. Every few seconds.
  void Sweep();

  // Out.

  // The next result, of a node none of whose results is out; nothing if there is none now. Waits
  // for the disk. Give it back by one of the next two.
  std::optional<SpoolDelivery> Dequeue();
  // It was dealt with: `outcome` is "committed", "refused", "expired" or "lost". Waits for the
  // disk.
  void Finish(const SpoolDelivery& delivery, std::string_view outcome);
  // It could not be delivered now; its node waits for `delay`.
  void Requeue(const SpoolDelivery& delivery, absl::Duration delay);
  // The bytes; waits for the disk.
  absl::StatusOr<std::unique_ptr<ByteSource>> Read(const SpoolDelivery& delivery, int64_t offset);
  // Called, without a lock, whenever a result became complete. Set before the first upload.
  void set_on_complete(std::function<void()> on_complete) { on_complete_ = std::move(on_complete); }

  // Results that are complete and not dealt with.
  int64_t waiting() const;

 private:
  struct Entry;
  struct Queue;
  struct Figures;

  Spool(const SpoolOptions& options, Certificate root, std::unique_ptr<BlobStore> blobs,
        Executor& disk, const Clock& clock, Metrics& metrics, FileOps& ops);

  absl::Status Recover();
  // Adds the id of an entry that cannot be read now to `unread`: its files stay for the next start.
  absl::Status RecoverEntry(const std::string& file, std::set<std::string>* unread)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status DiscardUnknown(const std::set<std::string>& unread)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<Entry>> Admit(const v1::OpenUploadRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoom(const std::string& node, int64_t bytes, int64_t entries) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Begin(const std::shared_ptr<Entry>& entry, const UploadRecord& upload,
             const UploadPeer& opener, Opened opened);
  absl::Status Keep(const Entry& entry, uint64_t order, const VerifiedResult& verified);
  std::shared_ptr<UploadSession> MakeComplete(Entry& entry, uint64_t order,
                                              const ResultRecord& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Entry> NextDelivery() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckBytes(const SpoolDelivery& delivery);
  void RetryLater(const SpoolDelivery& delivery, const absl::Status& why);
  absl::Status RemoveFiles(const Entry& entry);
  void Erase(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Discard(const Entry& entry, const absl::Status& why);
  void Charge(Entry& entry, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<UploadSession> SessionOf(const Entry& entry) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<Entry> FindEntry(std::string_view id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string PathOf(EntryState state, uint64_t order, const std::string& id) const;
  void Measure() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration OldestWait() const ABSL_LOCKS_EXCLUDED(mutex_);

  const SpoolOptions options_;
  const Certificate root_;
  const std::unique_ptr<BlobStore> blobs_;
  Executor& disk_;
  const Clock& clock_;
  FileOps& ops_;
  const std::string entries_folder_;
  const std::unique_ptr<Figures> figures_;
  std::function<void()> on_complete_;

  mutable Mutex mutex_;
  // By id.
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  // Key and attempt -> id.
  std::unordered_map<std::string, std::string> by_attempt_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Queue> queues_ ABSL_GUARDED_BY(mutex_);  // by node
  std::string last_node_ ABSL_GUARDED_BY(mutex_);                // whose result was handed out last
  uint64_t last_order_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all entries
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_SPOOL_SPOOL_H_
