#include "services/common/archive/tar_gz_reader.h"

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>

#include "absl/memory/memory.h"
#include "services/common/archive/utf8_locale.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"

namespace muster {
namespace {

constexpr size_t kBlock = 64 * 1024;

std::string Oddity(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return "a hard link";
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
    case AE_IFDIR:
      break;
    case AE_IFLNK:
      return "a symbolic link";
    case AE_IFCHR:
    case AE_IFBLK:
      return "a device";
    case AE_IFIFO:
      return "a named pipe";
    default:
      return "neither a file nor a folder";
  }
  if ((archive_entry_perm(entry) & 06000) != 0) return "setuid or setgid";
  return "";
}

}  // namespace

void TarGzReader::Free::operator()(archive* a) const { archive_read_free(a); }

TarGzReader::TarGzReader(ByteSource& source, const GzipLimits& limits)
    : gzip_(source, limits), buffer_(kBlock), archive_(archive_read_new()) {}

TarGzReader::~TarGzReader() = default;

absl::StatusOr<std::unique_ptr<TarGzReader>> TarGzReader::Open(ByteSource& source,
                                                               const GzipLimits& limits) {
  auto reader = absl::WrapUnique(new TarGzReader(source, limits));
  archive* a = reader->archive_.get();
  if (a == nullptr) return absl::ResourceExhaustedError("no memory for an archive reader");
  const auto fill = [](archive*, void* self, const void** data) -> la_ssize_t {
    return static_cast<TarGzReader*>(self)->Fill(data);
  };
  // Concatenated archives are read as one, so that no bytes after the first end are lost.
  if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
      archive_read_set_format_option(a, "tar", "read_concatenated_archives", "1") != ARCHIVE_OK ||
      archive_read_open(a, reader.get(), nullptr, fill, nullptr) != ARCHIVE_OK) {
    return reader->Failure();
  }
  return reader;
}

long TarGzReader::Fill(const void** data) {
  const absl::StatusOr<size_t> got = gzip_.Read(buffer_);
  if (!got.ok()) {
    gzip_status_ = got.status();
    archive_set_error(archive_.get(), EIO, "source");
    return -1;
  }
  *data = buffer_.data();
  return static_cast<long>(*got);
}

absl::Status TarGzReader::Failure() {
  if (!gzip_status_.ok()) return gzip_status_;
  const char* text = archive_error_string(archive_.get());
  return errors::TarGzMalformed(text == nullptr ? "it is not a gzip-compressed tar" : text);
}

// Reads what may follow the end of the tar, up to the checksum.
absl::Status TarGzReader::ReadToEnd() {
  for (;;) {
    ASSIGN_OR_RETURN(const size_t got, gzip_.Read(buffer_));
    if (got == 0) return absl::OkStatus();
  }
}

absl::StatusOr<std::optional<TarEntry>> TarGzReader::Next() {
  const Utf8Locale utf8;
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(archive_.get(), &entry);
  if (result == ARCHIVE_EOF) {
    RETURN_IF_ERROR(ReadToEnd());
    return std::nullopt;
  }
  // A warning means that an attribute cannot be read; only the name matters here.
  if (result != ARCHIVE_OK && result != ARCHIVE_WARN) return Failure();
  TarEntry out;
  const char* path = archive_entry_pathname(entry);
  if (path == nullptr) return errors::TarGzMalformed("an entry has no readable name");
  out.path = path;
  out.oddity = Oddity(entry);
  out.size = archive_entry_size(entry);
  out.mtime = archive_entry_mtime(entry);
  out.executable = (archive_entry_perm(entry) & 0100) != 0;
  if (!out.oddity.empty()) {
    out.type = TarEntry::Type::kOther;
  } else {
    out.type = archive_entry_filetype(entry) == AE_IFDIR ? TarEntry::Type::kDirectory
                                                         : TarEntry::Type::kFile;
  }
  return out;
}

absl::StatusOr<size_t> TarGzReader::Read(std::span<char> buffer) {
  for (;;) {
    const la_ssize_t got = archive_read_data(archive_.get(), buffer.data(), buffer.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (got != ARCHIVE_RETRY && got != ARCHIVE_WARN) return Failure();
  }
}

}  // namespace muster
