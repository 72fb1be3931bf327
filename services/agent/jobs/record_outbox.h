// The records of one job of this node, on disk until the root has stored them.
#ifndef MUSTER_SERVICES_AGENT_JOBS_RECORD_OUTBOX_H_
#define MUSTER_SERVICES_AGENT_JOBS_RECORD_OUTBOX_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/docker/daemon_log.h"
#include "services/agent/jobs/send_window.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"
#include "services/common/jobs/records_signature.h"
#include "services/common/journal/journal.h"

namespace muster {

// The limit of unacked records in transit. That of their output is a SendWindow.
inline constexpr size_t kMaxUnackedRecords = 256;

// Returns the name that a damaged journal gets.
inline std::string DamagedRecords(const std::string& path) { return path + ".damaged"; }

// A journal of JobRecords, without job and node; the sequence of a record is its number in the
// journal. Thread-safe: one thread appends while another sends.
class RecordOutbox {
 public:
  // Creates the journal. ALREADY_EXISTS.
  static absl::StatusOr<std::unique_ptr<RecordOutbox>> Create(FileOps& ops, const std::string& path,
                                                              std::string job, std::string node);
  // Opens it. NOT_FOUND, DATA_LOSS (JOURNAL_DAMAGED).
  static absl::StatusOr<std::unique_ptr<RecordOutbox>> Open(FileOps& ops, const std::string& path,
                                                            std::string job, std::string node);
  // Renames a damaged journal to DamagedRecords(path), and creates one with the records before the
  // damage. After a failure or a crash there is none at `path`: to be called again.
  static absl::StatusOr<std::unique_ptr<RecordOutbox>> Salvage(FileOps& ops,
                                                               const std::string& path,
                                                               std::string job, std::string node);

  // Assigns the record its sequence, and its time if it has none. It is durable when NextRecords
  // has returned it, or after Sync. INVALID_ARGUMENT (INVALID_JOB_RECORD). A failure, such as a
  // full disk, leaves the outbox unchanged.
  absl::Status Append(v1::JobRecord record);
  absl::Status Sync();

  // Adds the next records that may be sent to `out`, durable, as long as `out` has at most
  // `max_bytes`. `sign` signs the final record when it is sent, because the certificate must be
  // valid when the record arrives; null: it is not signed. If `sign` fails, a later call sends that
  // record. A failure of the disk may follow added records.
  absl::Status NextRecords(size_t max_bytes, const FinalSigner& sign, v1::JobRecords* out);

  // Handles an ack: the root relay has stored all records up to this sequence.
  void Ack(int64_t sequence);

  // Sends all unacked records again: they may be lost.
  void Rewind();
  // Does the same if no record was acked between the last call and this one, although one was sent
  // before. Returns whether a sent record is unacked.
  bool RewindIfStalled();

  // The records so far: whether one is of the start or has outputs, and the bytes of their output,
  // and of cuts.
  struct Stream {
    int64_t bytes = 0;
    DaemonLogBytes in_log;
  };
  struct Content {
    bool started = false;
    Stream out;
    Stream err;
    bool cut = false;
    int64_t cut_bytes = 0;
    bool outputs = false;  // of a deployment, as the next
    bool workspace = false;
  };
  Content content() const;

  bool has_final() const;
  bool final_acked() const;
  int64_t size() const;  // bytes of the file

 private:
  struct Sent {
    int64_t sequence;
    int64_t output;     // bytes
    int64_t end;        // in the journal
    absl::Duration at;  // monotonic
  };

  static absl::Status CopyRecords(FileOps& ops, const std::string& damaged, RecordOutbox& salvaged);
  RecordOutbox(std::string job, std::string node) : job_(std::move(job)), node_(std::move(node)) {}
  void Count(v1::JobRecord* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RewindLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string job_;
  const std::string node_;
  mutable Mutex mutex_;
  std::unique_ptr<Journal> journal_ ABSL_GUARDED_BY(mutex_);
  int64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last record
  RecordsDigest digest_ ABSL_GUARDED_BY(mutex_);  // of all records
  Content content_ ABSL_GUARDED_BY(mutex_);
  int64_t final_sequence_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: there is none
  int64_t acked_ ABSL_GUARDED_BY(mutex_) = 0;           // sequence
  int64_t acked_end_ ABSL_GUARDED_BY(mutex_) = Journal::begin();
  int64_t send_position_ ABSL_GUARDED_BY(mutex_) = Journal::begin();  // of the next record to send
  int64_t send_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t unacked_output_ ABSL_GUARDED_BY(mutex_) = 0;
  SendWindow window_ ABSL_GUARDED_BY(mutex_);
  // The first unacked record at the last RewindIfStalled; 0: there was none.
  int64_t checked_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  // Unacked, at most kMaxUnackedRecords.
  std::deque<Sent> sent_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_RECORD_OUTBOX_H_
