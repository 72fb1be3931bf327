// The results of a node that the fleet has acknowledged, kept for a while in case that the fleet's
// copy is damaged.
#ifndef MUSTER_SERVICES_AGENT_KEPT_RESULTS_H_
#define MUSTER_SERVICES_AGENT_KEPT_RESULTS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"

namespace muster {

// Names a result of one node.
struct ResultName {
  std::string run;
  std::string plugin;
  auto operator<=>(const ResultName&) const = default;
};

struct KeptResult {
  std::string path;  // no symbolic link is followed to read it
  std::string media_type;
  std::string file_name;
  int64_t size = 0;
  std::string sha256;  // of the committed content, in lower-case hex
};

struct KeptResultsOptions {
  std::string folder;  // created when a result is kept
  std::string node;
  int64_t max_bytes = int64_t{1} << 30;  // 0: nothing is kept
  absl::Duration max_age = absl::Hours(24);
  size_t max_results = 1'000;
  const Clock* clock = nullptr;  // these two outlive the user
  FileOps* ops = &PosixFileOps();
  // Returns whether the agent knows that the result is committed: completes moves that a crash
  // interrupted.
  std::function<bool(const ResultName&)> is_committed;
};

// Each result has a folder with its description and its file, which was moved there: keeping takes
// no space in addition. The oldest are removed first: beyond the limit in bytes, beyond a tenth of
// the free space of the disk, at their age, and an hour after the end of their run. The disk may
// lose a kept result, never another one. Thread-safe. The calls that change files wait for the
// disk, without the lock. Find waits for the call that changes the files of its result; HandleEnd,
// empty and bytes wait for no other call.
class KeptResults {
 public:
  static constexpr absl::Duration kKeptAfterEnd = absl::Hours(1);
  // The kept results take at most the free space divided by this.
  static constexpr int64_t kFreeSpaceParts = 10;

  // Reads the folder. Completes the moves of committed results, and removes what is incomplete.
  explicit KeptResults(KeptResultsOptions options);

  // Moves the file at `source`, a result of this name, after its commit: Prepare notes what will be
  // moved, before the agent notes the commit, and Move moves the file after that. A crash in
  // between loses nothing: either the result is delivered again, or the next start moves the file.
  // Prepare returns RESOURCE_EXHAUSTED without a space for the file; an earlier result of the name
  // may have been removed then.
  absl::Status Prepare(const ResultName& name, const std::string& source,
                       const KeptResult& description) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Move(const ResultName& name) ABSL_LOCKS_EXCLUDED(mutex_);

  std::optional<KeptResult> Find(const ResultName& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for another call that changes the files of the name.
  void Remove(const ResultName& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Handles the end of a run. A repeated end does not prolong the time.
  void HandleEnd(const std::string& run) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes what is due or exceeds a limit. Call it every few seconds: on a full disk it removes
  // all, because the agent's own files need the space.
  void Trim() ABSL_LOCKS_EXCLUDED(mutex_);

  bool empty() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    KeptResult result;
    std::string source;   // of a file that is not moved yet; otherwise empty
    int64_t kept_at = 0;  // microseconds since the epoch
    absl::Duration ended_at = absl::InfiniteDuration();  // monotonic, of the run
  };
  using Entries = std::map<ResultName, Entry>;

  std::string FolderOf(const ResultName& name) const;
  void Load(const std::string& folder) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status WriteDescription(const ResultName& name, const Entry& entry) const;
  absl::Status MoveFile(const ResultName& name, const Entry& entry) const;
  bool IsDue(const Entry& entry) const;
  int64_t Limit() const;
  void AwaitOwner(const ResultName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Admit(const ResultName& name, const Entry& entry) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the entry; the caller owns its folder then, and calls RemoveOwned.
  ResultName Dequeue(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveOwned(const ResultName& name) ABSL_LOCKS_EXCLUDED(mutex_);
  void Release(const ResultName& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entries::iterator FindDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entries::iterator FindOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const KeptResultsOptions options_;
  FileOps& ops_;
  mutable Mutex mutex_;
  CondVar released_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  // Names whose folder one call changes without the lock. No other call removes such an entry.
  std::set<ResultName> owned_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of entries_
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_KEPT_RESULTS_H_
