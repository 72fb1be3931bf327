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
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/blob/files/staged_file.h"
#include "services/common/errors/store.h"

namespace muster {
namespace {

constexpr size_t kMaxNameLength = 200;
constexpr size_t kMaxKnownFolders = 65'536;

std::string BlobsFolderOf(const std::string& root) { return root + "/blobs"; }

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

absl::Status CheckId(std::string_view id) {
  if (!id.empty() && id.size() <= 64 && std::all_of(id.begin(), id.end(), IsLowerOrDigit)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", ToAbsl(id), "' is not the id of a staged blob"));
}

// Checks for parts of letters, digits, '.', '_' and '-' that do not begin with a dot.
absl::Status CheckName(std::string_view name) {
  bool good = !name.empty() && name.size() <= kMaxNameLength && name.back() != '/';
  char before = '/';
  for (const char c : name) {
    const bool plain = IsLowerOrDigit(c) || c == '_' || c == '-';
    good = good && (plain || (before != '/' && (c == '.' || c == '/')));
    before = c;
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", ToAbsl(name), "' is not the name of a blob"));
}

absl::Status CheckPrefix(std::string_view prefix) {
  if (prefix.empty()) return absl::OkStatus();
  if (prefix.back() != '/') return absl::InvalidArgumentError("a prefix must end with '/'");
  return CheckName(prefix.substr(0, prefix.size() - 1));
}

class FilesBlobStore final : public BlobStore, private StagedFileHost {
 public:
  FilesBlobStore(FilesBlobStoreOptions options, FileOps& ops)
      : options_(std::move(options)), ops_(ops) {}

  absl::Status Start() {
    for (const std::string& folder : {options_.root, StagedFolder(), BlobsFolder()}) {
      RETURN_IF_ERROR(MakeFolders(ops_, folder));
    }
    ASSIGN_OR_RETURN(lock_, ops_.Open(options_.root + "/lock", OpenMode::kReadWriteOrCreate));
    RETURN_IF_ERROR(lock_->Lock());
    // MakeFolders skips existing folders that cannot be synced. Publish could not succeed in them.
    RETURN_IF_ERROR(ops_.SyncFolder(options_.root));
    return SweepLogs();
  }

  absl::StatusOr<std::unique_ptr<StagedBlob>> Stage(std::string_view id,
                                                    int64_t expected_size) override {
    RETURN_IF_ERROR(CheckId(id));
    return StagedFile::Create(*this, id, expected_size);
  }

  absl::StatusOr<std::unique_ptr<StagedBlob>> Resume(std::string_view id) override {
    RETURN_IF_ERROR(CheckId(id));
    return StagedFile::Resume(*this, id);
  }

  absl::StatusOr<int64_t> StagedSize(std::string_view id) override {
    RETURN_IF_ERROR(CheckId(id));
    ASSIGN_OR_RETURN(auto info, ops_.Stat(StagedFile::DataPath(*this, id)));
    return info.size;
  }

  absl::Status DiscardStaged(std::string_view id) override {
    RETURN_IF_ERROR(CheckId(id));
    return StagedFile::Remove(*this, id);
  }

  absl::StatusOr<std::unique_ptr<ByteSource>> Open(std::string_view name, int64_t offset) override {
    RETURN_IF_ERROR(CheckName(name));
    ASSIGN_OR_RETURN(auto file, ops_.Open(PathOf(name), OpenMode::kRead));
    ASSIGN_OR_RETURN(auto size, file->Size());
    if (offset < 0 || offset > size) {
      return absl::OutOfRangeError(
          absl::StrCat("offset ", offset, " is outside of blob ", ToAbsl(name), " of ", size));
    }
    return MakeFileSource(std::move(file), offset, size);
  }

  absl::StatusOr<int64_t> Size(std::string_view name) override {
    RETURN_IF_ERROR(CheckName(name));
    ASSIGN_OR_RETURN(auto info, ops_.Stat(PathOf(name)));
    return info.size;
  }

  absl::Status SyncName(std::string_view name) override {
    RETURN_IF_ERROR(CheckName(name));
    return ops_.SyncFolder(ParentFolder(PathOf(name)));
  }

  absl::Status Remove(std::string_view name) override {
    RETURN_IF_ERROR(CheckName(name));
    absl::Status removed = ops_.Remove(PathOf(name));
    return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
  }

  absl::Status RemoveAll(std::string_view prefix) override {
    if (prefix.empty()) return absl::InvalidArgumentError("the prefix is empty");
    RETURN_IF_ERROR(CheckPrefix(prefix));
    prefix.remove_suffix(1);
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
    ASSIGN_OR_RETURN(auto entries, ops_.List(StagedFolder()));
    std::vector<std::string> ids;
    for (const FolderEntry& entry : entries) {
      if (CheckId(entry.name).ok()) ids.push_back(entry.name);
    }
    return ids;
  }

  absl::StatusOr<std::vector<std::string>> ListBelow(std::string_view prefix) override {
    RETURN_IF_ERROR(CheckPrefix(prefix));
    std::vector<std::string> names;
    RETURN_IF_ERROR(AddBelow(std::string(prefix), &names));
    return names;
  }

  absl::StatusOr<std::vector<std::string>> ListFolders(std::string_view prefix) override {
    RETURN_IF_ERROR(CheckPrefix(prefix));
    ASSIGN_OR_RETURN(const auto entries, ListFolder(prefix));
    std::vector<std::string> parts;
    for (const FolderEntry& entry : entries) {
      if (IsFolderOfNames(entry)) parts.push_back(entry.name);
    }
    return parts;
  }

  absl::StatusOr<int64_t> Available() override {
    ASSIGN_OR_RETURN(auto space, ops_.Space(options_.root));
    return std::max<int64_t>(0,
                             space.available - std::min(options_.reserve_bytes, space.total / 20));
  }

 private:
  FileOps& ops() override { return ops_; }
  std::string StagedFolder() const override { return options_.root + "/staged"; }
  std::string BlobsFolder() const { return BlobsFolderOf(options_.root); }
  int64_t sync_every() const override { return options_.sync_every; }

  // A folder that PathOf made for the last part of names begins with '='.
  static bool IsFolderOfNames(const FolderEntry& entry) {
    return entry.type == FileType::kFolder && entry.name.front() != '=';
  }

  // Lists the folder of `prefix` ("" or "a/b/"). It is empty if it was removed since.
  absl::StatusOr<std::vector<FolderEntry>> ListFolder(std::string_view prefix) {
    std::string folder = absl::StrCat(BlobsFolder(), "/", ToAbsl(prefix));
    folder.pop_back();
    auto entries = ops_.List(folder);
    if (absl::IsNotFound(entries.status())) return std::vector<FolderEntry>();
    return entries;
  }

  absl::Status AddBelow(const std::string& prefix, std::vector<std::string>* names) {
    ASSIGN_OR_RETURN(const auto entries, ListFolder(prefix));
    for (const FolderEntry& entry : entries) {
      if (entry.type != FileType::kFolder) continue;
      const std::string below = absl::StrCat(prefix, entry.name, "/");
      if (IsFolderOfNames(entry)) {
        RETURN_IF_ERROR(AddBelow(below, names));
        continue;
      }
      ASSIGN_OR_RETURN(const auto blobs, ListFolder(below));
      for (const FolderEntry& blob : blobs) names->push_back(absl::StrCat(prefix, blob.name));
    }
    return absl::OkStatus();
  }

  // A folder of 256 for the last part. '=' is in no name: it cannot meet a folder of one.
  std::string PathOf(std::string_view name) const {
    const size_t slash = name.rfind('/') + 1;  // 0 if there is none
    return absl::StrCat(BlobsFolder(), "/", ToAbsl(name.substr(0, slash)), "=",
                        absl::StrFormat("%02x", ExtendCrc32c(0, name.substr(slash)) & 0xff), "/",
                        ToAbsl(name.substr(slash)));
  }

  absl::Status CheckSpace(int64_t more) override {
    ASSIGN_OR_RETURN(auto available, Available());
    if (more <= available) return absl::OkStatus();
    return errors::DiskHasNoRoom(more, available);
  }

  absl::StatusOr<std::string> PrepareFolders(std::string_view name) override {
    RETURN_IF_ERROR(CheckName(name));
    std::string path = PathOf(name);
    RETURN_IF_ERROR(MakeDurable(ParentFolder(path)));
    return path;
  }

  // Syncs the parent of a folder once in the life of this process: an existing folder may have been
  // created directly before a crash.
  absl::Status MakeDurable(const std::string& folder) {
    if (folder == BlobsFolder()) return absl::OkStatus();
    {
      MutexLock lock(mutex_);
      if (known_.contains(folder)) return absl::OkStatus();
    }
    RETURN_IF_ERROR(MakeDurable(ParentFolder(folder)));
    if (absl::Status made = ops_.MakeFolder(folder); !made.ok() && !absl::IsAlreadyExists(made)) {
      return made;
    }
    RETURN_IF_ERROR(ops_.SyncFolder(ParentFolder(folder)));
    MutexLock lock(mutex_);
    if (known_.size() >= kMaxKnownFolders) known_.clear();
    known_.insert(folder);
    return absl::OkStatus();
  }

  // Removes logs whose file was published or discarded directly before a crash.
  absl::Status SweepLogs() {
    ASSIGN_OR_RETURN(auto entries, ops_.List(StagedFolder()));
    std::set<std::string> names;
    for (const FolderEntry& entry : entries) names.insert(entry.name);
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
  RETURN_IF_ERROR(store->Start());
  return store;
}

absl::StatusOr<bool> HasHadBlobs(FileOps& ops, const std::string& root) {
  const auto folders = ops.List(BlobsFolderOf(root));
  if (absl::IsNotFound(folders.status())) return false;
  if (!folders.ok()) return folders.status();
  return !folders->empty();
}

}  // namespace muster
