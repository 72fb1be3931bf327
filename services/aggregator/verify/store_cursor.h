// Compares the stored results and archives with their records, one after another.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERIFY_STORE_CURSOR_H_
#define MUSTER_SERVICES_AGGREGATOR_VERIFY_STORE_CURSOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/aggregator/verify/damage.h"
#include "services/aggregator/verify/read_failures.h"
#include "services/common/base/clock.h"
#include "services/common/base/io.h"
#include "services/common/base/sha256.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/state_store.h"

namespace muster {

// A result, or the archive of a run, that differs from its record.
struct DamagedObject {
  ResultKey key;  // of an archive: without plugin and node
  int64_t generation = 0;
  std::string damage;
  std::string redelivery;  // as in ResultRecord, after the damage was recorded
};

struct VerifyStep {
  int64_t bytes = 0;    // that were read
  int64_t objects = 0;  // that were compared
  std::vector<DamagedObject> damaged;
  bool end = false;  // there are no more
};

struct VerifyOptions {
  // Counts failed reads: after kMaxReadFailures of them the bytes of a blob count as lost. Null:
  // they never do. Outlives the cursor.
  ReadFailures* read_failures = nullptr;
  bool keep_declined = false;  // as in RecordDamage
};

// Records damage, and the end of it, in the store. A read that fails for another reason than damage
// is reported, but not recorded: the next one may succeed. Not thread-safe; waits for the disk.
class StoreCursor {
 public:
  // `run`: the only run; empty: all runs, the newest first. `actor`: in the audit log.
  StoreCursor(StateStore& store, BlobStore& blobs, const Clock& clock, Actor actor, std::string run,
              VerifyOptions options = {});

  // Continues at a position of an earlier cursor over all runs.
  void SeekTo(std::string_view position);
  std::string position() const;

  // Reads about `bytes`, or compares some hundred small results. After an error, the next step
  // repeats what failed.
  absl::StatusOr<VerifyStep> Step(int64_t bytes);

 private:
  // The bytes that a record describes.
  struct Object : StoredObjectId {
    int64_t size = 0;
    std::optional<uint32_t> crc32c;
    std::string sha256;
    std::string partial_blob;
    int64_t partial_size = 0;
    std::string damage;  // as recorded
  };

  absl::Status Advance(VerifyStep& step);
  absl::StatusOr<bool> FindNext();
  absl::StatusOr<bool> NextRun();
  absl::Status NextPage();
  absl::Status Read(VerifyStep& step);
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenObject();
  absl::Status Judge(const absl::Status& failure) const;
  std::string Compare();
  std::string ComparePartial();
  absl::Status Finish(std::string damage, bool proven, VerifyStep& step);

  StateStore& store_;
  BlobStore& blobs_;
  const DamageRecorder recorder_;
  const std::string only_run_;
  const VerifyOptions options_;
  std::optional<RunRecord> run_;  // until its archive was compared
  std::string run_token_;         // of the list that begins with run_
  std::string next_run_token_;
  bool last_run_ = false;
  Page<ResultRecord> page_;
  std::string page_token_;  // of page_
  std::string sought_run_;  // the run of the sought position; page_token_ applies to it alone
  size_t index_ = 0;        // of the next result in page_
  bool results_done_ = false;
  bool archive_found_ = false;  // object_ is, or was, the archive of run_
  std::optional<Object> object_;
  std::unique_ptr<ByteSource> source_;
  int64_t read_ = 0;
  uint32_t crc32c_ = 0;
  Sha256 sha256_;
  std::string buffer_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERIFY_STORE_CURSOR_H_
