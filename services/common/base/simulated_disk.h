// A disk in memory that remembers what was synced and what was not, for tests of crash safety.
//
// Writes and names are visible immediately, as on a real machine, but survive Crash() only if they
// were synced. Unsynced changes are dropped or kept at random, in any combination: data in sectors
// of 512 bytes (so writes are torn and reordered), sizes, and names one by one. The
// adversary is harsher than a journalling file system; only a rename never loses its file: it may
// not have happened, have happened, or have left both names.
#ifndef MUSTER_SERVICES_COMMON_BASE_SIMULATED_DISK_H_
#define MUSTER_SERVICES_COMMON_BASE_SIMULATED_DISK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"

namespace muster {

// Thread-safe.
class SimulatedDisk final : public FileOps {
 public:
  enum class Call {
    kCreate,
    kOpen,
    kWrite,
    kRead,
    kReserve,
    kSync,
    kTruncate,
    kLink,  // File::LinkTo
    kRename,
    kSyncFolder,
    kRemove,
    kMakeFolder,
    kList,
    kStat,
    kSpace,
  };

  // `capacity`: bytes that files may take together. `seed`: of what a failed sync made durable.
  explicit SimulatedDisk(int64_t capacity = int64_t{1} << 40, uint64_t seed = 0);

  // Power is lost: every open file dies, and what was not synced is kept or dropped as `seed` says.
  // Calls work again after that; faults that are still due are forgotten.
  void Crash(uint64_t seed);

  // The process is lost: every open file dies; what was written stays visible, synced or not.
  // Faults that are still due are forgotten. After PowerOff, calls work again.
  void Restart();

  // From now on each call fails, until Crash() or Restart(): nothing that the objects of a lost
  // process do at their end reaches the disk.
  void PowerOff();

  // Power fails at the n-th call from now that changes anything (1: the next one): it and all later
  // calls fail, until Crash().
  void PowerOffAt(int n);

  // Power fails directly after the n-th call of this kind from now: the next change fails.
  void PowerOffAfter(Call call, int n);
  bool powered_off() const;

  // Calls that changed anything so far: the upper end for PowerOffAt.
  int64_t changes() const;

  // The n-th call of this kind from now fails with `error_number`. A write that fails with ENOSPC
  // has written its first half; a sync that fails has written some sectors and forgets the others:
  // a later one does not bring them back.
  void FailAt(Call call, int n, int error_number);

  // Changes the bytes that files may take together. A write that does not fit writes what fits.
  void SetCapacity(int64_t capacity);
  int64_t used() const;

  // Returns the files below a folder whose name or content would not surely survive the loss of
  // power.
  std::vector<std::string> NotDurable(const std::string& folder) const;

  // Returns whether a file would surely be found after the loss of power.
  bool HasDurableName(const std::string& path) const;

  // Returns the files of which a sync succeeded although bytes were missing that an earlier sync
  // lost when it failed: the caller takes them for durable.
  std::vector<std::string> SyncedAfterLoss() const;

  // Calls `hook` before each call, without a lock. Null: no more.
  void BeforeCall(std::function<void()> hook);

  // Flips one bit of a file's content, also of what is durable.
  void FlipBit(const std::string& path, int64_t offset);

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> CreateUnnamed(const std::string& folder) override;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status RenameNoReplace(const std::string& from, const std::string& to) override;
  absl::Status SyncFolder(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveFolder(const std::string& path) override;
  absl::Status MakeFolder(const std::string& path) override;
  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& path) override;
  absl::StatusOr<FileInfo> Stat(const std::string& path) override;
  absl::StatusOr<SpaceInfo> Space(const std::string& path) override;

 private:
  friend class SimulatedFile;
  struct Node;
  using NodePtr = std::shared_ptr<Node>;

  // A change of a file's content that is not synced: bytes at an offset, or a new size.
  struct Write {
    int64_t offset = 0;
    std::string data;
    std::optional<int64_t> truncate;
  };

  // A change of a folder's names that is not synced. `moved_*`: what a rename took away, and where
  // to; the removal of the old name survives only with the new name.
  struct NameChange {
    std::string name;
    NodePtr node;  // null: removed
    NodePtr moved_node;
    std::weak_ptr<Node> moved_folder;  // weak: it may be the folder that holds this change
    std::string moved_name;
  };

  struct Node {
    FileType type = FileType::kFile;
    bool locked = false;
    int64_t reserved = 0;
    std::string content, durable;                         // files
    std::vector<Write> unsynced;                          // files
    std::map<std::string, NodePtr> names, durable_names;  // folders
    std::vector<NameChange> unsynced_names;               // folders
  };

  absl::Status Enter(Call call, std::string_view subject, bool changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  NodePtr Find(std::string_view path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<NodePtr> FolderOf(const std::string& path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::unique_ptr<File>> CreateLocked(const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RenameLocked(const std::string& from, const std::string& to, bool replace)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteLocked(Node& node, std::string_view data, int64_t offset, std::string_view path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t Used() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void FindNotDurable(const Node& folder, const std::string& path, bool durable,
                             std::vector<std::string>& found);
  static void Put(std::string& content, int64_t offset, std::string_view data);
  static int64_t UsedBelow(const Node& node);
  static void ReleaseLocks(Node& node);
  static int64_t LinksBelow(const Node& folder, const NodePtr& node);
  void CrashNames(const NodePtr& folder, std::mt19937_64& chance);
  static void WriteSome(Node& node, std::mt19937_64& chance);
  void Settle(const NodePtr& node, std::mt19937_64& chance, std::vector<NodePtr>& seen);

  mutable Mutex mutex_;
  int64_t capacity_ ABSL_GUARDED_BY(mutex_);
  const NodePtr root_ ABSL_GUARDED_BY(mutex_);  // what it points to is
  // Rises with each Crash and Restart: files opened before are dead.
  uint64_t life_ ABSL_GUARDED_BY(mutex_) = 0;
  bool powered_off_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t power_off_at_ ABSL_GUARDED_BY(mutex_) = -1;
  std::map<Call, std::pair<int, int>> faults_ ABSL_GUARDED_BY(mutex_);  // calls left, errno
  std::optional<std::pair<Call, int>> power_off_after_ ABSL_GUARDED_BY(mutex_);  // calls left
  std::vector<std::string> synced_after_loss_ ABSL_GUARDED_BY(mutex_);
  std::mt19937_64 sync_chance_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> before_call_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_SIMULATED_DISK_H_
