// Records what senders sent and which answers they got, and compares it with what is stored.
#ifndef MUSTER_SERVICES_AGGREGATOR_SIMULATION_CRASH_HISTORY_H_
#define MUSTER_SERVICES_AGGREGATOR_SIMULATION_CRASH_HISTORY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/blob/blob_store.h"
#include "services/common/store/sqlite/sqlite_store.h"

namespace muster::testing {

// Returns the error of a broken promise.
absl::Status Broken(std::string text);
bool IsBroken(const absl::Status& status);

// A sender's view of the result of one pair.
class PairHistory {
 public:
  // The bytes of an upload that its sender knows to be stored.
  struct Upload {
    std::string content;  // of which it sends the bytes
    int64_t sent = 0;     // may be stored
    int64_t written = 0;
    int64_t durable = 0;
    bool completing = false;  // the bytes may be published as a result: they are no partial data
  };

  // The digest was sent: it may be committed from now on.
  void Send(const std::string& sha256, const std::string& content) { sent_[sha256] = content; }

  // The sender of the bytes with the digest `sent` has learned that `committed` is stored.
  absl::Status Acknowledged(const std::string& sent, const std::string& committed);

  // Compares a stored result with the history, and remembers that it is committed.
  absl::Status Compare(const ResultRecord& result, BlobStore& blobs, bool faulty);
  // Checks that the time-out of a sealed run has the bytes of the pair's open upload.
  absl::Status CheckPartialKept(const ResultRecord& result) const;
  const std::string& committed() const { return committed_; }

  Upload& upload(const std::string& id) { return uploads_[id]; }

  // The upload whose bytes become partial data at a seal; empty: none is certain.
  void SetOpen(const std::string& id) { open_ = id; }
  void LosePower();
  void LoseUploads();

 private:
  absl::Status Committed(const std::string& sha256);
  absl::Status ComparePartial(const ResultRecord& result, BlobStore& blobs, bool faulty);

  std::map<std::string, std::string> sent_;  // contents by their digest
  std::string committed_;                    // empty: none is known to be
  std::map<std::string, Upload> uploads_;
  std::string open_;
};

struct RunHistory {
  // The states with a question mark: a call failed, and may have had an effect.
  enum class State { kMaybeCreated, kLive, kMaybeEnded, kEnded, kMaybeDeleted, kDeleted, kNone };

  State state = State::kMaybeCreated;
  bool timed_out = false;
  bool sealed = false;
  std::map<std::string, PairHistory> pairs;  // by node
};

// All runs. `faulty`: the disk may refuse calls, so a check that cannot read has no result.
class CrashHistory {
 public:
  std::map<std::string, RunHistory> runs;

  // Compares all of the store with the history, and learns the effect of calls that failed.
  absl::Status Compare(SqliteStore& store, BlobStore& blobs, bool faulty);

  // Checks that the loss of power now would lose no committed result and no archive.
  absl::Status CheckDurable(SqliteStore& store, const SimulatedDisk& disk) const;

  // Checks that each stored blob belongs to a record. After the sweeps, without faults.
  absl::Status CheckBlobs(SqliteStore& store, BlobStore& blobs) const;

  void LosePower();

 private:
  static absl::Status CompareRun(RunHistory& run, const std::string& id, SqliteStore& store,
                                 BlobStore& blobs, bool faulty);
  static absl::Status CompareArchive(RunHistory& run, const RunRecord& record, BlobStore& blobs,
                                     bool faulty);
  static absl::Status CompareFeed(SqliteStore& store, bool faulty);
};

// The name of the plugin of all pairs.
inline constexpr char kPlugin[] = "facts";

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_SIMULATION_CRASH_HISTORY_H_
