#include "services/common/base/timed_file_ops.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace muster {
namespace {

class TimedFile final : public File {
 public:
  TimedFile(std::unique_ptr<File> file, const TimedFileOps& ops)
      : file_(std::move(file)), ops_(ops) {}

  absl::Status WriteAt(std::string_view data, int64_t offset) override {
    return file_->WriteAt(data, offset);
  }
  absl::StatusOr<size_t> ReadAt(std::span<char> buffer, int64_t offset) override {
    return file_->ReadAt(buffer, offset);
  }
  absl::Status Reserve(int64_t size) override { return file_->Reserve(size); }
  void StartWriteback(int64_t offset, int64_t length) override {
    file_->StartWriteback(offset, length);
  }
  absl::Status SyncData() override {
    return ops_.Measure([this] { return file_->SyncData(); });
  }
  absl::Status Truncate(int64_t size) override { return file_->Truncate(size); }
  absl::StatusOr<int64_t> Size() override { return file_->Size(); }
  absl::Status LinkTo(const std::string& path) override { return file_->LinkTo(path); }
  absl::Status Lock() override { return file_->Lock(); }

 private:
  const std::unique_ptr<File> file_;
  const TimedFileOps& ops_;
};

}  // namespace

absl::Status TimedFileOps::Measure(const std::function<absl::Status()>& sync) const {
  const absl::Duration began = clock_.MonotonicNow();
  absl::Status status = sync();
  observe_(clock_.MonotonicNow() - began);
  return status;
}

absl::StatusOr<std::unique_ptr<File>> TimedFileOps::Wrap(
    absl::StatusOr<std::unique_ptr<File>> file) {
  if (!file.ok()) return file.status();
  return std::make_unique<TimedFile>(*std::move(file), *this);
}

absl::StatusOr<std::unique_ptr<File>> TimedFileOps::Create(const std::string& path) {
  return Wrap(ops_.Create(path));
}

absl::StatusOr<std::unique_ptr<File>> TimedFileOps::CreateUnnamed(const std::string& folder) {
  return Wrap(ops_.CreateUnnamed(folder));
}

absl::StatusOr<std::unique_ptr<File>> TimedFileOps::Open(const std::string& path, OpenMode mode) {
  return Wrap(ops_.Open(path, mode));
}

absl::Status TimedFileOps::SyncFolder(const std::string& path) {
  return Measure([&] { return ops_.SyncFolder(path); });
}

}  // namespace muster
