#include "services/common/archive/result_unpacker.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/archive/member_paths.h"
#include "services/common/archive/tar_gz_reader.h"
#include "services/common/base/names.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

// Reads a tar once. A fault of the tar sets `why`; an error status comes from the source or the
// visitor.
class Walk {
 public:
  Walk(ByteSource& source, const UnpackLimits& limits, UnpackVisitor& visitor)
      : source_(source),
        limits_(limits),
        visitor_(visitor),
        paths_({limits.max_entries, limits.max_depth, limits.max_name, limits.max_path}),
        buffer_(64 * 1024) {}

  absl::StatusOr<UnpackCheck> Run() {
    const absl::Status walked = Entries();
    if (!walked.ok() && why_.empty()) return walked;
    if (why_.empty() && files_ + folders_ == 0) why_ = "it is an empty tar";
    return UnpackCheck{why_.empty(), why_, files_, bytes_};
  }

 private:
  // Records a fault of the tar itself.
  absl::Status Broken(std::string why) {
    why_ = std::move(why);
    return absl::InvalidArgumentError(why_);
  }

  // INVALID_ARGUMENT of the reader is a fault of the stream; other errors come from the source.
  absl::Status FromReader(const absl::Status& status) {
    if (!absl::IsInvalidArgument(status)) return status;
    return Broken(std::string(status.message()));
  }

  absl::Status Entries() {
    auto opened = TarGzReader::Open(source_, {.ratio = limits_.ratio});
    if (!opened.ok()) return FromReader(opened.status());
    reader_ = *std::move(opened);
    for (;;) {
      const absl::StatusOr<std::optional<TarEntry>> entry = reader_->Next();
      if (!entry.ok()) return FromReader(entry.status());
      if (!entry->has_value()) return absl::OkStatus();
      RETURN_IF_ERROR(Member(**entry));
    }
  }

  absl::Status Member(const TarEntry& entry) {
    if (!entry.oddity.empty()) {
      return Broken(
          absl::StrCat(entry.oddity, ": ", SafeFileName(entry.path.substr(0, kMaxFileName))));
    }
    if (entry.type == TarEntry::Type::kDirectory) {
      const absl::StatusOr<std::optional<std::string>> path = paths_.Folder(entry.path);
      if (!path.ok()) return FromReader(path.status());
      if (!path->has_value()) return absl::OkStatus();
      ++folders_;
      return visitor_.Folder(**path);
    }
    const absl::StatusOr<std::string> path = paths_.File(entry.path);
    if (!path.ok()) return FromReader(path.status());
    if (entry.size > limits_.max_bytes - bytes_) {
      return Broken(absl::StrCat("it unpacks to more than ", limits_.max_bytes, " bytes"));
    }
    ++files_;
    RETURN_IF_ERROR(visitor_.BeginFile(*path, entry.path, entry.size, entry.executable));
    RETURN_IF_ERROR(Content(entry.size));
    return visitor_.EndFile();
  }

  absl::Status Content(int64_t size) {
    int64_t read = 0;
    for (;;) {
      const absl::StatusOr<size_t> got = reader_->Read(buffer_);
      if (!got.ok()) return FromReader(got.status());
      if (*got == 0) break;
      read += static_cast<int64_t>(*got);
      bytes_ += static_cast<int64_t>(*got);
      // The holes of a sparse file need no compressed bytes, so the reader's limit does not apply
      // to them.
      if (bytes_ > limits_.ratio_free_bytes && bytes_ / limits_.ratio > reader_->consumed()) {
        return Broken(absl::StrCat("it unpacks to more than ", limits_.ratio, " times its size"));
      }
      RETURN_IF_ERROR(visitor_.Data({buffer_.data(), *got}));
    }
    return read == size ? absl::OkStatus() : Broken("a file's length is not what its header says");
  }

  ByteSource& source_;
  const UnpackLimits limits_;
  UnpackVisitor& visitor_;
  MemberPaths paths_;
  std::vector<char> buffer_;
  std::unique_ptr<TarGzReader> reader_;
  std::string why_;
  int64_t files_ = 0;
  int64_t folders_ = 0;
  int64_t bytes_ = 0;
};

class NoVisitor : public UnpackVisitor {
 public:
  absl::Status Folder(std::string_view) override { return absl::OkStatus(); }
  absl::Status BeginFile(std::string_view, std::string_view, int64_t, bool) override {
    return absl::OkStatus();
  }
  absl::Status Data(std::string_view) override { return absl::OkStatus(); }
  absl::Status EndFile() override { return absl::OkStatus(); }
};

}  // namespace

absl::StatusOr<UnpackCheck> CheckTarGz(ByteSource& source, const UnpackLimits& limits) {
  NoVisitor nothing;
  return Walk(source, limits, nothing).Run();
}

absl::Status UnpackTarGz(ByteSource& source, const UnpackLimits& limits, UnpackVisitor& visitor) {
  ASSIGN_OR_RETURN(const UnpackCheck done, Walk(source, limits, visitor).Run());
  return done.ok ? absl::OkStatus() : absl::InvalidArgumentError(done.why);
}

}  // namespace muster
