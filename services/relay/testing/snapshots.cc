#include "services/relay/testing/snapshots.h"

#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster::testing {

class Snapshots::HookedFile : public File {
 public:
  HookedFile(Snapshots& owner, std::unique_ptr<File> file)
      : owner_(owner), file_(std::move(file)) {}

  absl::Status WriteAt(std::string_view data, int64_t offset) override {
    owner_.BeforeChange();
    return file_->WriteAt(data, offset);
  }
  absl::StatusOr<size_t> ReadAt(std::span<char> buffer, int64_t offset) override {
    return file_->ReadAt(buffer, offset);
  }
  absl::Status Reserve(int64_t size) override { return file_->Reserve(size); }
  void StartWriteback(int64_t offset, int64_t length) override {
    file_->StartWriteback(offset, length);
  }
  absl::Status SyncData() override { return file_->SyncData(); }
  absl::Status Truncate(int64_t size) override {
    owner_.BeforeChange();
    return file_->Truncate(size);
  }
  absl::StatusOr<int64_t> Size() override { return file_->Size(); }
  absl::Status LinkTo(const std::string& path) override {
    owner_.BeforeChange();
    return file_->LinkTo(path);
  }
  absl::Status Lock() override { return file_->Lock(); }

 private:
  Snapshots& owner_;
  const std::unique_ptr<File> file_;
};

class Snapshots::HookedOps : public FileOps {
 public:
  explicit HookedOps(Snapshots& owner) : owner_(owner) {}

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) override {
    owner_.BeforeChange();
    return Hook(real_.Create(path));
  }
  absl::StatusOr<std::unique_ptr<File>> CreateUnnamed(const std::string& folder) override {
    return Hook(real_.CreateUnnamed(folder));
  }
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    if (mode == OpenMode::kReadWriteOrCreate) owner_.BeforeChange();
    return Hook(real_.Open(path, mode));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    owner_.BeforeChange();
    return real_.Rename(from, to);
  }
  absl::Status RenameNoReplace(const std::string& from, const std::string& to) override {
    owner_.BeforeChange();
    return real_.RenameNoReplace(from, to);
  }
  absl::Status SyncFolder(const std::string& path) override { return real_.SyncFolder(path); }
  absl::Status Remove(const std::string& path) override {
    owner_.BeforeChange();
    return real_.Remove(path);
  }
  absl::Status RemoveFolder(const std::string& path) override {
    owner_.BeforeChange();
    return real_.RemoveFolder(path);
  }
  absl::Status MakeFolder(const std::string& path) override {
    owner_.BeforeChange();
    return real_.MakeFolder(path);
  }
  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& path) override {
    return real_.List(path);
  }
  absl::StatusOr<FileInfo> Stat(const std::string& path) override { return real_.Stat(path); }
  absl::StatusOr<SpaceInfo> Space(const std::string& path) override { return real_.Space(path); }

 private:
  absl::StatusOr<std::unique_ptr<File>> Hook(absl::StatusOr<std::unique_ptr<File>> file) {
    if (!file.ok()) return file.status();
    return std::unique_ptr<File>(std::make_unique<HookedFile>(owner_, *std::move(file)));
  }

  Snapshots& owner_;
  FileOps& real_ = PosixFileOps();
};

Snapshots::Snapshots(std::string folder)
    : folder_(std::move(folder)), ops_(std::make_unique<HookedOps>(*this)) {
  vfs_.BeforeChange([this] { BeforeChange(); });
}

Snapshots::~Snapshots() { vfs_.BeforeChange(nullptr); }

void Snapshots::Start(std::function<void(const std::string& copy)> taken) {
  MutexLock lock(mutex_);
  taken_ = std::move(taken);
}

void Snapshots::Stop() {
  MutexLock lock(mutex_);
  taken_ = nullptr;
}

void Snapshots::BeforeChange() {
  MutexLock lock(mutex_);
  if (!taken_) return;
  const std::string copy = absl::StrCat(folder_, "-", ++copies_);
  std::filesystem::create_directories(folder_);
  std::filesystem::copy(folder_, copy, std::filesystem::copy_options::recursive);
  taken_(copy);
}

}  // namespace muster::testing
