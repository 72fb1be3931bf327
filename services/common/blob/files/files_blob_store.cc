#include "services/common/blob/files/files_blob_store.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/mutex.h"
#include "services/common/base/strings.h"
#include "services/common/blob/files/staged_file.h"

namespace muster {
namespace {

constexpr size_t kMaxNameLength = 200;
constexpr size_t kMaxKnownFolders = 65'536;

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

absl::Status CheckId(std::string_view id) {
  if (!id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), IsLowerOrDigit)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("'", ToAbsl(id), "' is no id of a staged blob"));
}

// Parts of letters, digits, '.', '_' and '-' that do not begin with a dot.
absl::Status CheckName(std::string_view name) {
  bool good = !name.empty() && name.size() <= kMaxNameLength && name.back() != '/';
  char before = '/';
  for (const char c : name) {
    const bool plain = IsLowerOrDigit(c) || c == '_' || c == '-';
    good = good && (plain || (before != '/' && (c == '.' || c == '/')));
    before = c;
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", ToAbsl(name), "' is no name of a blob"));
}

class FilesBlobStore final : public BlobStore, private StagedFileHost {
 public:
  FilesBlobStore(FilesBlobStoreOptions options, FileOps& ops)
      : options_(std::move(options)), ops_(ops) {}

  absl::Status Start() {
    for (const std::string& folder : {options_.root, StagedFolder(), BlobsFolder()}) {
      if (absl::Status made = MakeFolders(ops_, folder); !made.ok()) return made;
      // One that a process made before it was lost may not be durable yet.
      if (absl::Status kept = ops_.SyncFolder(ParentFolder(folder)); !kept.ok()) return kept;
    }
    auto lock = ops_.Open(options_.root + "/lock", OpenMode::kReadWriteOrCreate);
    if (!lock.ok()) return lock.status();
    lock_ = *std::move(lock);
    if (absl::Status locked = lock_->Lock(); !locked.ok()) return locked;
    return SweepLogs();
  }

  absl::StatusOr<std::unique_ptr<StagedBlob>> Stage(std::string_view id,
                                                    int64_t expected_size) override {
    if (absl::Status good = CheckId(id); !good.ok()) return good;
    return StagedFile::Create(*this, id, expected_size);
  }

  absl::StatusOr<std::unique_ptr<StagedBlob>> Resume(std::string_view id) override {
    if (absl::Status good = CheckId(id); !good.ok()) return good;
    return StagedFile::Resume(*this, id);
  }

  absl::Status DiscardStaged(std::string_view id) override {
    if (absl::Status good = CheckId(id); !good.ok()) return good;
    return StagedFile::Remove(*this, id);
  }

  absl::StatusOr<std::unique_ptr<ByteSource>> Open(std::string_view name, int64_t offset) override {
    if (absl::Status good = CheckName(name); !good.ok()) return good;
    auto file = ops_.Open(PathOf(name), OpenMode::kRead);
    if (!file.ok()) return file.status();
    auto size = (*file)->Size();
    if (!size.ok()) return size.status();
    if (offset < 0 || offset > *size) {
      return absl::OutOfRangeError(
          absl::StrCat("offset ", offset, " lies outside blob ", ToAbsl(name), " of ", *size));
    }
    return MakeFileSource(*std::move(file), offset, *size);
  }

  absl::StatusOr<int64_t> Size(std::string_view name) override {
    if (absl::Status good = CheckName(name); !good.ok()) return good;
    auto info = ops_.Stat(PathOf(name));
    if (!info.ok()) return info.status();
    return info->size;
  }

  absl::Status Remove(std::string_view name) override {
    if (absl::Status good = CheckName(name); !good.ok()) return good;
    absl::Status removed = ops_.Remove(PathOf(name));
    return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
  }

  absl::Status RemoveAll(std::string_view prefix) override {
    if (prefix.empty() || prefix.back() != '/') {
      return absl::InvalidArgumentError("a prefix ends with '/'");
    }
    prefix.remove_suffix(1);
    if (absl::Status good = CheckName(prefix); !good.ok()) return good;
    const std::string folder = absl::StrCat(BlobsFolder(), "/", ToAbsl(prefix));
    {
      MutexLock lock(mutex_);
      std::erase_if(known_, [&](const std::string& known) {
        return known == folder || absl::StartsWith(known, folder + "/");
      });
    }
    return RemoveTree(ops_, folder);
  }

  absl::StatusOr<std::vector<std::string>> ListStaged() override {
    auto entries = ops_.List(StagedFolder());
    if (!entries.ok()) return entries.status();
    std::vector<std::string> ids;
    for (const FolderEntry& entry : *entries) {
      if (CheckId(entry.name).ok()) ids.push_back(entry.name);
    }
    return ids;
  }

  absl::StatusOr<int64_t> Available() override {
    auto space = ops_.Space(options_.root);
    if (!space.ok()) return space.status();
    return std::max<int64_t>(
        0, space->available - std::min(options_.reserve_bytes, space->total / 20));
  }

 private:
  FileOps& ops() override { return ops_; }
  std::string StagedFolder() const override { return options_.root + "/staged"; }
  std::string BlobsFolder() const { return options_.root + "/blobs"; }
  int64_t sync_every() const override { return options_.sync_every; }

  // A folder of 256 for the last part. '=' is in no name: it cannot meet a folder of one.
  std::string PathOf(std::string_view name) const {
    const size_t slash = name.rfind('/') + 1;  // 0 if there is none
    return absl::StrCat(BlobsFolder(), "/", ToAbsl(name.substr(0, slash)), "=",
                        absl::StrFormat("%02x", ExtendCrc32c(0, name.substr(slash)) & 0xff), "/",
                        ToAbsl(name.substr(slash)));
  }

  absl::Status CheckSpace(int64_t more) override {
    auto available = Available();
    if (!available.ok()) return available.status();
    if (more <= *available) return absl::OkStatus();
    return WithRetryAfter(
        MakeError(absl::StatusCode::kResourceExhausted, "DISK_FULL",
                  absl::StrCat("The disk has no room for ", more, " bytes more: ", *available,
                               " are free for results."),
                  "Free space on the aggregator's disk, or delete old runs; what was accepted "
                  "before is kept."),
        absl::Seconds(30));
  }

  absl::StatusOr<std::string> PrepareFolders(std::string_view name) override {
    if (absl::Status good = CheckName(name); !good.ok()) return good;
    std::string path = PathOf(name);
    if (absl::Status made = MakeDurable(ParentFolder(path)); !made.ok()) return made;
    return path;
  }

  // A folder that is there may have been made just before a crash: the parent is synced once in the
  // life of this process also then.
  absl::Status MakeDurable(const std::string& folder) {
    if (folder == BlobsFolder()) return absl::OkStatus();
    {
      MutexLock lock(mutex_);
      if (known_.contains(folder)) return absl::OkStatus();
    }
    if (absl::Status above = MakeDurable(ParentFolder(folder)); !above.ok()) return above;
    if (absl::Status made = ops_.MakeFolder(folder); !made.ok() && !absl::IsAlreadyExists(made)) {
      return made;
    }
    if (absl::Status kept = ops_.SyncFolder(ParentFolder(folder)); !kept.ok()) return kept;
    MutexLock lock(mutex_);
    if (known_.size() >= kMaxKnownFolders) known_.clear();
    known_.insert(folder);
    return absl::OkStatus();
  }

  // Logs whose file was published or discarded just before a crash.
  absl::Status SweepLogs() {
    auto entries = ops_.List(StagedFolder());
    if (!entries.ok()) return entries.status();
    std::set<std::string> names;
    for (const FolderEntry& entry : *entries) names.insert(entry.name);
    for (const std::string& name : names) {
      if (!absl::EndsWith(name, ".log") || names.contains(name.substr(0, name.size() - 4))) {
        continue;
      }
      absl::Status removed = ops_.Remove(absl::StrCat(StagedFolder(), "/", name));
      if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
    }
    return absl::OkStatus();
  }

  const FilesBlobStoreOptions options_;
  FileOps& ops_;
  std::unique_ptr<File> lock_;
  Mutex mutex_;
  std::set<std::string> known_ ABSL_GUARDED_BY(mutex_);  // folders that are durable
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlobStore>> OpenFilesBlobStore(FilesBlobStoreOptions options,
                                                              FileOps& ops) {
  auto store = std::make_unique<FilesBlobStore>(std::move(options), ops);
  if (absl::Status started = store->Start(); !started.ok()) return started;
  return store;
}

}  // namespace muster
