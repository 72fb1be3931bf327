#include "services/common/archive/tar_gz_writer.h"

#include <archive.h>
#include <archive_entry.h>

#include <array>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "services/common/archive/utf8_locale.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/results.h"

namespace muster {
namespace {

constexpr int kBlock = 64 * 1024;

}  // namespace

void TarGzWriter::Free::operator()(archive* a) const { archive_write_free(a); }

TarGzWriter::TarGzWriter(ByteSink& sink, const TarGzOptions& options)
    : mtime_(options.mtime), gzip_(sink, options.level), archive_(archive_write_new()) {}

TarGzWriter::~TarGzWriter() { ended_ = true; }

absl::StatusOr<std::unique_ptr<TarGzWriter>> TarGzWriter::Create(ByteSink& sink,
                                                                 const TarGzOptions& options) {
  auto writer = absl::WrapUnique(new TarGzWriter(sink, options));
  archive* a = writer->archive_.get();
  if (a == nullptr) return absl::ResourceExhaustedError("no memory for an archive writer");
  const auto emit = [](archive*, void* self, const void* data, size_t size) -> la_ssize_t {
    return static_cast<TarGzWriter*>(self)->Emit(data, size);
  };
  if (archive_write_set_format_pax_restricted(a) != ARCHIVE_OK ||
      archive_write_set_bytes_per_block(a, kBlock) != ARCHIVE_OK ||
      archive_write_set_bytes_in_last_block(a, 1) != ARCHIVE_OK ||
      archive_write_open(a, writer.get(), nullptr, emit, nullptr) != ARCHIVE_OK) {
    return writer->Failure("begin the archive");
  }
  return writer;
}

long TarGzWriter::Emit(const void* data, size_t size) {
  // libarchive is never told about a failure, because it would then leak memory. Bytes after a
  // failure or after the end are dropped.
  if (!ended_ && sink_status_.ok()) {
    sink_status_ = gzip_.Write({static_cast<const char*>(data), size});
  }
  return static_cast<long>(size);
}

absl::Status TarGzWriter::Failure(std::string_view what) {
  if (!sink_status_.ok()) return sink_status_;
  const char* text = archive_error_string(archive_.get());
  return errors::ArchiveWriteFailed(what, text == nullptr ? "?" : text);
}

absl::Status TarGzWriter::WriteHeader(std::string_view path, int64_t size, unsigned type,
                                      unsigned mode) {
  const Utf8Locale utf8;
  const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> entry(archive_entry_new(),
                                                                            archive_entry_free);
  path_ = std::string(path);
  archive_entry_set_pathname(entry.get(), path_.c_str());
  archive_entry_set_filetype(entry.get(), type);
  archive_entry_set_perm(entry.get(), mode);
  archive_entry_set_size(entry.get(), size);
  archive_entry_set_mtime(entry.get(), absl::ToTimeT(mtime_), 0);
  if (archive_write_header(archive_.get(), entry.get()) != ARCHIVE_OK) {
    return Failure(absl::StrCat("add ", path_));
  }
  return sink_status_;
}

absl::Status TarGzWriter::AddDirectory(std::string_view path) {
  return WriteHeader(path, 0, AE_IFDIR, 0755);
}

absl::StatusOr<ContentInfo> TarGzWriter::AddFile(std::string_view path, std::string_view content) {
  RETURN_IF_ERROR(BeginFile(path, static_cast<int64_t>(content.size())));
  RETURN_IF_ERROR(Write(content));
  return EndFile();
}

absl::StatusOr<ContentInfo> TarGzWriter::AddFile(std::string_view path, int64_t size,
                                                 ByteSource& source) {
  RETURN_IF_ERROR(BeginFile(path, size));
  std::vector<char> buffer(kBlock);
  for (;;) {
    const absl::StatusOr<size_t> got = source.Read(buffer);
    if (!got.ok()) return Annotate(got.status(), path);
    if (*got == 0) return EndFile();
    RETURN_IF_ERROR(Write({buffer.data(), *got}));
  }
}

absl::Status TarGzWriter::BeginFile(std::string_view path, int64_t size, bool executable) {
  if (size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(ToAbsl(path), ": an archive entry requires its size in advance"));
  }
  announced_ = size;
  written_ = 0;
  return WriteHeader(path, size, AE_IFREG, executable ? 0755 : 0644);
}

absl::Status TarGzWriter::Write(std::string_view data) {
  if (static_cast<int64_t>(data.size()) > announced_ - written_) {
    return errors::ArchiveSizeMismatch(path_, announced_, "more");
  }
  file_digest_.Update(data);
  written_ += static_cast<int64_t>(data.size());
  while (!data.empty()) {
    const la_ssize_t n = archive_write_data(archive_.get(), data.data(), data.size());
    if (n <= 0) return Failure(absl::StrCat("write ", path_));
    data.remove_prefix(static_cast<size_t>(n));
  }
  return sink_status_;
}

absl::StatusOr<ContentInfo> TarGzWriter::EndFile() {
  if (written_ != announced_) {
    return errors::ArchiveSizeMismatch(path_, announced_, absl::StrCat(written_));
  }
  return ContentInfo{.size = written_, .sha256 = ToHex(file_digest_.Finish())};
}

absl::StatusOr<ContentInfo> TarGzWriter::Finish() {
  if (archive_write_close(archive_.get()) != ARCHIVE_OK) return Failure("end the archive");
  if (!sink_status_.ok()) return sink_status_;
  ended_ = true;
  RETURN_IF_ERROR(gzip_.Finish());
  return ContentInfo{.size = gzip_.size(), .sha256 = ToHex(gzip_.digest())};
}

}  // namespace muster
