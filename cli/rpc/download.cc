#include "cli/rpc/download.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/output/output_file.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/cli.h"

namespace muster::cli {
namespace {

constexpr size_t kBuffer = size_t{1} << 20;

class FileSource : public ByteSource {
 public:
  explicit FileSource(File& file) : file_(file) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    absl::StatusOr<size_t> count = file_.ReadAt(buffer, offset_);
    if (count.ok()) offset_ += static_cast<int64_t>(*count);
    return count;
  }

 private:
  File& file_;
  int64_t offset_ = 0;
};

absl::Status ForEachPiece(ByteSource& source,
                          const std::function<absl::Status(std::string_view)>& use) {
  std::vector<char> buffer(kBuffer);
  while (true) {
    ASSIGN_OR_RETURN(const size_t count, source.Read(buffer));
    if (count == 0) return absl::OkStatus();
    RETURN_IF_ERROR(use({buffer.data(), count}));
  }
}

absl::Status Hash(File& file, Sha256& hash) {
  FileSource source(file);
  return ForEachPiece(source, [&hash](std::string_view piece) {
    hash.Update(piece);
    return absl::OkStatus();
  });
}

enum class Existing { kNone, kSame, kOther };

Existing CompareExisting(const std::string& path, int64_t size, const std::string& sha256) {
  const auto file = PosixFileOps().Open(path, OpenMode::kRead);
  // A file that cannot be opened may be in a folder that cannot be searched.
  if (!file.ok()) return PosixFileOps().Stat(path).ok() ? Existing::kOther : Existing::kNone;
  const auto existing_size = (*file)->Size();
  if (existing_size.ok() && *existing_size == 0 && size > 0) return Existing::kNone;
  if (!existing_size.ok() || *existing_size != size) return Existing::kOther;
  Sha256 hash;
  const bool same = Hash(**file, hash).ok() && DigestBytes(hash.Finish()) == sha256;
  return same ? Existing::kSame : Existing::kOther;
}

// Appends the missing bytes to the partial file and checks the complete file. Sets `*resumed` if
// the partial file was not empty.
absl::Status CompletePart(File& part, const Download& download, bool* resumed) {
  absl::StatusOr<int64_t> size = part.Size();
  if (!size.ok()) return size.status();
  if (*size > download.size) {
    RETURN_IF_ERROR(part.Truncate(0));
    size = 0;
  }
  *resumed = *size > 0;
  Sha256 hash;
  RETURN_IF_ERROR(Hash(part, hash));
  int64_t done = *size;
  download.on_progress(done);
  const std::unique_ptr<ByteSource> source = download.open(done);
  RETURN_IF_ERROR(ForEachPiece(*source, [&](std::string_view piece) {
    if (done + static_cast<int64_t>(piece.size()) > download.size) {
      return errors::DownloadSizeMismatch(done + static_cast<int64_t>(piece.size()), download.size);
    }
    hash.Update(piece);
    RETURN_IF_ERROR(part.WriteAt(piece, done));
    done += static_cast<int64_t>(piece.size());
    download.on_progress(done);
    return absl::OkStatus();
  }));
  if (done != download.size) return errors::DownloadSizeMismatch(done, download.size);
  if (DigestBytes(hash.Finish()) != download.sha256) {
    return errors::DownloadDigestMismatch();
  }
  return part.SyncData();
}

// Returns NOT_FOUND (FILE_NOT_FOUND) if the folder of the file does not exist.
absl::Status CheckTargetFolder(const std::string& path) {
  // "out/" names a folder.
  const std::string folder = path.ends_with('/') ? path : ParentFolder(path);
  std::error_code fault;
  (void)std::filesystem::status(folder, fault);
  // Any other fault is reported by the open.
  return fault == std::errc::no_such_file_or_directory ? errors::OutputFolderMissing(folder)
                                                       : absl::OkStatus();
}

}  // namespace

std::string PartOf(const std::string& path) { return path + ".part"; }

absl::StatusOr<std::unique_ptr<File>> OpenPart(const std::string& path) {
  const std::string part_path = PartOf(path);
  RETURN_IF_ERROR(CheckOutputFile(path));
  RETURN_IF_ERROR(CheckTargetFolder(path));
  RETURN_IF_ERROR(CheckOutputFile(part_path));
  ASSIGN_OR_RETURN(auto part, PosixFileOps().Open(part_path, OpenMode::kReadWriteOrCreate));
  RETURN_IF_ERROR(part->Lock());
  return part;
}

absl::Status Fetch(const Download& download) {
  FileOps& ops = PosixFileOps();
  RETURN_IF_ERROR(CheckOutputFile(download.path));
  const Existing existing = CompareExisting(download.path, download.size, download.sha256);
  if (existing == Existing::kSame) {
    download.on_progress(download.size);
    return absl::OkStatus();
  }
  if (existing == Existing::kOther && !download.overwrite) {
    return errors::OutputExists(download.path);
  }
  ASSIGN_OR_RETURN(const auto part, OpenPart(download.path));

  bool resumed = false;
  absl::Status done = CompletePart(*part, download, &resumed);
  if (done.code() == absl::StatusCode::kDataLoss) {
    // Discard wrong bytes. If the download was resumed, the wrong bytes may be those of an earlier
    // attempt: fetch the file again.
    RETURN_IF_ERROR(part->Truncate(0));
    if (resumed) done = CompletePart(*part, download, &resumed);
    if (absl::IsDataLoss(done)) (void)ops.Remove(PartOf(download.path));
  }
  if (!done.ok()) return done;
  RETURN_IF_ERROR(ops.Rename(PartOf(download.path), download.path));
  return ops.SyncFolder(ParentFolder(download.path));
}

std::string TargetPath(const std::string& output, const std::string& file_name) {
  std::error_code ignored;
  if (output.empty()) return file_name;
  if (!std::filesystem::is_directory(output, ignored)) return output;
  return (std::filesystem::path(output) / file_name).string();
}

absl::Status CheckNoOtherFile(const std::string& path, int64_t size, const std::string& sha256) {
  return CompareExisting(path, size, sha256) == Existing::kOther ? errors::OutputExists(path)
                                                                 : absl::OkStatus();
}

}  // namespace muster::cli
