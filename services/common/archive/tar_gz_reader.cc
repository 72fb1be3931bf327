#include "services/common/archive/tar_gz_reader.h"

#include <archive.h>
#include <archive_entry.h>

#include <cerrno>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "services/common/archive/utf8_locale.h"
#include "services/common/base/strings.h"
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

TarGzReader::TarGzReader(ByteSource& source, const TarGzReadLimits& limits)
    : source_(source), limits_(limits), buffer_(kBlock), archive_(archive_read_new()) {}

TarGzReader::~TarGzReader() = default;

absl::StatusOr<std::unique_ptr<TarGzReader>> TarGzReader::Open(ByteSource& source,
                                                               const TarGzReadLimits& limits) {
  auto reader = absl::WrapUnique(new TarGzReader(source, limits));
  archive* a = reader->archive_.get();
  if (a == nullptr) return absl::ResourceExhaustedError("no memory for an archive reader");
  const auto fill = [](archive*, void* self, const void** data) -> la_ssize_t {
    return static_cast<TarGzReader*>(self)->Fill(data);
  };
  // Concatenated archives are read as one, so that no bytes after the first end are lost.
  if (archive_read_support_filter_gzip(a) != ARCHIVE_OK ||
      archive_read_support_format_tar(a) != ARCHIVE_OK ||
      archive_read_set_format_option(a, "tar", "read_concatenated_archives", "1") != ARCHIVE_OK ||
      archive_read_open(a, reader.get(), nullptr, fill, nullptr) != ARCHIVE_OK) {
    return reader->Failure();
  }
  // Exactly one gzip filter: the other filter is the identity of the source.
  if (archive_filter_count(a) != 2 || archive_filter_code(a, 0) != ARCHIVE_FILTER_GZIP) {
    return errors::TarGzMalformed("it is not gzip-compressed (once)");
  }
  return reader;
}

long TarGzReader::Fill(const void** data) {
  const int64_t made = archive_filter_bytes(archive_.get(), 0);
  if (made > limits_.free_bytes && made / limits_.ratio > consumed_) {
    over_ratio_ = true;
    archive_set_error(archive_.get(), EIO, "ratio");
    return -1;
  }
  const absl::StatusOr<size_t> got = source_.Read(buffer_);
  if (!got.ok()) {
    source_status_ = got.status();
    archive_set_error(archive_.get(), EIO, "source");
    return -1;
  }
  consumed_ += static_cast<int64_t>(*got);
  *data = buffer_.data();
  return static_cast<long>(*got);
}

absl::Status TarGzReader::Failure() {
  if (!source_status_.ok()) return source_status_;
  if (over_ratio_) {
    return errors::TarGzMalformed(
        absl::StrCat("it unpacks to more than ", limits_.ratio, " times its size"));
  }
  const char* text = archive_error_string(archive_.get());
  return errors::TarGzMalformed(text == nullptr ? "it is not a gzip-compressed tar" : text);
}

absl::StatusOr<std::optional<TarEntry>> TarGzReader::Next() {
  const Utf8Locale utf8;
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(archive_.get(), &entry);
  if (result == ARCHIVE_EOF) return std::nullopt;
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
