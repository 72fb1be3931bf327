#include "services/common/base/simulated_disk.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "services/common/base/errno_error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/base.h"

namespace muster {
namespace {

// Path components without empty ones and ".".
std::vector<std::string> Split(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

std::string BaseName(std::string_view path) {
  const auto parts = Split(path);
  return parts.empty() ? "" : parts.back();
}

}  // namespace

class SimulatedFile final : public File {
 public:
  SimulatedFile(SimulatedDisk* disk, SimulatedDisk::NodePtr node, std::string path)
      : disk_(disk), node_(std::move(node)), path_(std::move(path)), life_(disk->life_) {}

  ~SimulatedFile() override {
    MutexLock lock(disk_->mutex_);
    if (locked_ && life_ == disk_->life_) node_->locked = false;
  }

  absl::Status WriteAt(std::string_view data, int64_t offset) override {
    MutexLock lock(disk_->mutex_);
    if (absl::Status s = Enter(SimulatedDisk::Call::kWrite, true); !s.ok()) {
      // A full disk takes what fits.
      if (absl::IsResourceExhausted(s) && data.size() > 1) {
        disk_->WriteLocked(*node_, data.substr(0, data.size() / 2), offset, path_).IgnoreError();
      }
      return s;
    }
    return disk_->WriteLocked(*node_, data, offset, path_);
  }

  absl::StatusOr<size_t> ReadAt(std::span<char> buffer, int64_t offset) override {
    MutexLock lock(disk_->mutex_);
    RETURN_IF_ERROR(Enter(SimulatedDisk::Call::kRead, false));
    const std::string& content = node_->content;
    if (offset >= static_cast<int64_t>(content.size())) return 0;
    return content.copy(buffer.data(), buffer.size(), static_cast<size_t>(offset));
  }

  absl::Status Reserve(int64_t size) override {
    MutexLock lock(disk_->mutex_);
    RETURN_IF_ERROR(Enter(SimulatedDisk::Call::kReserve, true));
    const int64_t more = size - SimulatedDisk::UsedBelow(*node_);
    if (more > disk_->capacity_ - disk_->Used()) return ErrnoError(ENOSPC, "reserve", path_);
    node_->reserved = std::max(node_->reserved, size);
    return absl::OkStatus();
  }

  void StartWriteback(int64_t, int64_t) override {}

  absl::Status SyncData() override {
    MutexLock lock(disk_->mutex_);
    const uint64_t life = disk_->life_;
    absl::Status s = Enter(SimulatedDisk::Call::kSync, true);
    if (!s.ok() && (disk_->powered_off_ || life != life_)) return s;
    // A failed sync leaves the pages marked clean: they are never written again.
    if (!s.ok()) {
      SimulatedDisk::WriteSome(*node_, disk_->sync_chance_);
      return s;
    }
    for (const SimulatedDisk::Write& write : node_->unsynced) {
      if (write.truncate) {
        node_->durable.resize(static_cast<size_t>(*write.truncate), '\0');
      } else {
        SimulatedDisk::Put(node_->durable, write.offset, write.data);
      }
    }
    node_->unsynced.clear();
    if (node_->durable.compare(0, node_->content.size(), node_->content) != 0) {
      disk_->synced_after_loss_.push_back(path_);
    }
    return s;
  }

  absl::Status Truncate(int64_t size) override {
    MutexLock lock(disk_->mutex_);
    RETURN_IF_ERROR(Enter(SimulatedDisk::Call::kTruncate, true));
    node_->content.resize(static_cast<size_t>(size), '\0');
    node_->reserved = 0;
    node_->unsynced.push_back({0, "", size});
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> Size() override {
    MutexLock lock(disk_->mutex_);
    RETURN_IF_ERROR(Enter(SimulatedDisk::Call::kStat, false));
    return static_cast<int64_t>(node_->content.size());
  }

  absl::Status LinkTo(const std::string& path) override {
    MutexLock lock(disk_->mutex_);
    RETURN_IF_ERROR(Enter(SimulatedDisk::Call::kLink, true));
    ASSIGN_OR_RETURN(auto folder, disk_->FolderOf(path));
    if (!folder->names.emplace(BaseName(path), node_).second) {
      return ErrnoError(EEXIST, "link", path);
    }
    folder->unsynced_names.push_back({BaseName(path), node_, nullptr, {}, ""});
    return absl::OkStatus();
  }

  absl::Status Lock() override {
    MutexLock lock(disk_->mutex_);
    if (node_->locked && !locked_) {
      return errors::FileLocked(path_);
    }
    node_->locked = locked_ = true;
    return absl::OkStatus();
  }

 private:
  absl::Status Enter(SimulatedDisk::Call call, bool changes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_->mutex_) {
    if (life_ != disk_->life_) return ErrnoError(EIO, "use after a crash:", path_);
    return disk_->Enter(call, path_, changes);
  }

  SimulatedDisk* const disk_;
  const SimulatedDisk::NodePtr node_;
  const std::string path_;
  const uint64_t life_;
  bool locked_ = false;
};

SimulatedDisk::SimulatedDisk(int64_t capacity, uint64_t seed)
    : capacity_(capacity), root_(std::make_shared<Node>()), sync_chance_(seed) {
  root_->type = FileType::kFolder;
}

SimulatedDisk::NodePtr SimulatedDisk::Find(std::string_view path) const {
  NodePtr node = root_;
  for (const std::string& part : Split(path)) {
    const auto child = node->names.find(part);
    if (child == node->names.end()) return nullptr;
    node = child->second;
  }
  return node;
}

absl::StatusOr<SimulatedDisk::NodePtr> SimulatedDisk::FolderOf(const std::string& path) const {
  NodePtr folder = Find(ParentFolder(path));
  if (folder == nullptr) return ErrnoError(ENOENT, "find the folder of", path);
  if (folder->type != FileType::kFolder) return ErrnoError(ENOTDIR, "find the folder of", path);
  return folder;
}

int64_t SimulatedDisk::UsedBelow(const Node& node) {
  if (node.type == FileType::kFile) {
    return std::max(node.reserved, static_cast<int64_t>(node.content.size()));
  }
  int64_t used = 0;
  for (const auto& [name, child] : node.names) used += UsedBelow(*child);
  return used;
}

int64_t SimulatedDisk::LinksBelow(const Node& folder, const NodePtr& node) {
  int64_t links = 0;
  for (const auto& [name, child] : folder.names) {
    links += (child == node ? 1 : 0) + LinksBelow(*child, node);
  }
  return links;
}

void SimulatedDisk::Put(std::string& content, int64_t offset, std::string_view data) {
  const size_t end = static_cast<size_t>(offset) + data.size();
  if (content.size() < end) content.resize(end, '\0');
  content.replace(static_cast<size_t>(offset), data.size(), data);
}

int64_t SimulatedDisk::Used() const { return UsedBelow(*root_); }

absl::Status SimulatedDisk::WriteLocked(Node& node, std::string_view data, int64_t offset,
                                        std::string_view path) {
  const int64_t end = offset + static_cast<int64_t>(data.size());
  const int64_t more = end - UsedBelow(node);
  const int64_t missing = more > 0 ? more - (capacity_ - Used()) : 0;
  if (missing > 0)
    data = data.substr(0, static_cast<size_t>(std::max<int64_t>(0, std::ssize(data) - missing)));
  if (missing <= 0 || !data.empty()) {
    Put(node.content, offset, data);
    node.unsynced.push_back({offset, std::string(data), std::nullopt});
  }
  return missing > 0 ? ErrnoError(ENOSPC, "write", path) : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<File>> SimulatedDisk::CreateLocked(const std::string& path) {
  ASSIGN_OR_RETURN(auto folder, FolderOf(path));
  auto node = std::make_shared<Node>();
  if (!folder->names.emplace(BaseName(path), node).second) {
    return ErrnoError(EEXIST, "create", path);
  }
  folder->unsynced_names.push_back({BaseName(path), node, nullptr, {}, ""});
  return std::make_unique<SimulatedFile>(this, node, path);
}

absl::StatusOr<std::unique_ptr<File>> SimulatedDisk::Create(const std::string& path) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kCreate, path, true));
  return CreateLocked(path);
}

absl::StatusOr<std::unique_ptr<File>> SimulatedDisk::CreateUnnamed(const std::string& folder) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kCreate, folder, true));
  if (Find(folder) == nullptr) return ErrnoError(ENOENT, "create a file in", folder);
  return std::make_unique<SimulatedFile>(this, std::make_shared<Node>(), folder);
}

absl::StatusOr<std::unique_ptr<File>> SimulatedDisk::Open(const std::string& path, OpenMode mode) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kOpen, path, false));
  const NodePtr node = Find(path);
  if (node == nullptr && mode == OpenMode::kReadWriteOrCreate) return CreateLocked(path);
  if (node == nullptr) return ErrnoError(ENOENT, "open", path);
  if (node->type != FileType::kFile) return ErrnoError(EISDIR, "open", path);
  return std::make_unique<SimulatedFile>(this, node, path);
}

absl::Status SimulatedDisk::RenameLocked(const std::string& from, const std::string& to,
                                         bool replace) {
  ASSIGN_OR_RETURN(auto source, FolderOf(from));
  ASSIGN_OR_RETURN(auto target, FolderOf(to));
  const auto old = source->names.find(BaseName(from));
  if (old == source->names.end()) return ErrnoError(ENOENT, "rename", from);
  const NodePtr node = old->second;
  if (!replace && target->names.contains(BaseName(to))) return ErrnoError(EEXIST, "rename", to);
  source->names.erase(old);
  target->names[BaseName(to)] = node;
  target->unsynced_names.push_back({BaseName(to), node, nullptr, {}, ""});
  source->unsynced_names.push_back({BaseName(from), nullptr, node, target, BaseName(to)});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kRename, to, true));
  return RenameLocked(from, to, true);
}

absl::Status SimulatedDisk::RenameNoReplace(const std::string& from, const std::string& to) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kRename, to, true));
  return RenameLocked(from, to, false);
}

absl::Status SimulatedDisk::SyncFolder(const std::string& path) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kSyncFolder, path, true));
  const NodePtr folder = Find(path);
  if (folder == nullptr) return ErrnoError(ENOENT, "sync", path);
  folder->durable_names = folder->names;
  folder->unsynced_names.clear();
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Remove(const std::string& path) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kRemove, path, true));
  ASSIGN_OR_RETURN(auto folder, FolderOf(path));
  if (folder->names.erase(BaseName(path)) == 0) return ErrnoError(ENOENT, "remove", path);
  folder->unsynced_names.push_back({BaseName(path), nullptr, nullptr, {}, ""});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::RemoveFolder(const std::string& path) {
  {
    MutexLock lock(mutex_);
    const NodePtr node = Find(path);
    if (node != nullptr && !node->names.empty()) return ErrnoError(ENOTEMPTY, "remove", path);
  }
  return Remove(path);
}

absl::Status SimulatedDisk::MakeFolder(const std::string& path) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kMakeFolder, path, true));
  if (Find(path) != nullptr) return ErrnoError(EEXIST, "make", path);
  ASSIGN_OR_RETURN(auto folder, FolderOf(path));
  auto node = std::make_shared<Node>();
  node->type = FileType::kFolder;
  folder->names[BaseName(path)] = node;
  folder->unsynced_names.push_back({BaseName(path), node, nullptr, {}, ""});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FolderEntry>> SimulatedDisk::List(const std::string& path) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kList, path, false));
  const NodePtr folder = Find(path);
  if (folder == nullptr) return ErrnoError(ENOENT, "list", path);
  std::vector<FolderEntry> entries;
  for (const auto& [name, node] : folder->names) entries.push_back({name, node->type});
  return entries;
}

absl::StatusOr<FileInfo> SimulatedDisk::Stat(const std::string& path) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kStat, path, false));
  const NodePtr node = Find(path);
  if (node == nullptr) return ErrnoError(ENOENT, "stat", path);
  return FileInfo{node->type, static_cast<int64_t>(node->content.size()), 0,
                  LinksBelow(*root_, node)};
}

bool SimulatedDisk::HasDurableName(const std::string& path) const {
  MutexLock lock(mutex_);
  NodePtr node = root_;
  for (const std::string& part : Split(path)) {
    const auto child = node->names.find(part);
    const auto durable = node->durable_names.find(part);
    if (child == node->names.end() || durable == node->durable_names.end()) return false;
    if (child->second != durable->second) return false;
    node = child->second;
  }
  return true;
}

absl::StatusOr<SpaceInfo> SimulatedDisk::Space(const std::string& path) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Enter(Call::kSpace, path, false));
  return SpaceInfo{capacity_, capacity_ - Used()};
}

}  // namespace muster
