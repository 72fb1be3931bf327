#include "services/relay/spool/spool_entry.h"

#include <memory>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/relay.h"

namespace muster {
namespace {

constexpr std::string_view kMagic = "MSP1";
constexpr size_t kPrefix = 12;
constexpr size_t kMaxHeader = 64 * 1024;
constexpr size_t kOrderDigits = 16;
constexpr size_t kIdDigits = 32;

void AppendLittleEndian(uint32_t value, std::string* to) {
  for (int i = 0; i < 4; ++i) to->push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

struct OpenedEntry {
  std::unique_ptr<File> file;
  std::string header;
};

absl::StatusOr<OpenedEntry> OpenEntry(FileOps& ops, const std::string& path) {
  ASSIGN_OR_RETURN(auto file, ops.Open(path, OpenMode::kRead));
  std::string prefix(kPrefix, '\0');
  ASSIGN_OR_RETURN(const auto n, file->ReadAt(prefix, 0));
  if (n != kPrefix || prefix.substr(0, 4) != kMagic)
    return errors::SpoolDamaged(path, "it has no beginning");
  const uint32_t length = LittleEndian(std::string_view(prefix).substr(4));
  if (length > kMaxHeader) return errors::SpoolDamaged(path, "its header is too long");
  OpenedEntry entry{std::move(file), std::string(length, '\0')};
  ASSIGN_OR_RETURN(const auto read, entry.file->ReadAt(entry.header, kPrefix));
  if (read != length || Crc32c(entry.header) != LittleEndian(std::string_view(prefix).substr(8))) {
    return errors::SpoolDamaged(path, "its header does not match its checksum");
  }
  return entry;
}

}  // namespace

std::string FormatEntryName(const EntryName& name) {
  const char state = static_cast<char>(name.state);
  if (name.state == EntryState::kOpen) return absl::StrFormat("%c-%s", state, name.id);
  return absl::StrFormat("%c-%016x-%s", state, name.order, name.id);
}

std::optional<EntryName> ParseEntryName(std::string_view file) {
  EntryName name;
  if (file.size() < 2 || file[1] != '-') return std::nullopt;
  name.state = static_cast<EntryState>(file[0]);
  file.remove_prefix(2);
  if (name.state == EntryState::kComplete || name.state == EntryState::kDone) {
    if (file.size() < kOrderDigits + 1 || file[kOrderDigits] != '-') return std::nullopt;
    if (!IsHex(file.substr(0, kOrderDigits)) ||
        !absl::SimpleHexAtoi(ToAbsl(file.substr(0, kOrderDigits)), &name.order)) {
      return std::nullopt;
    }
    file.remove_prefix(kOrderDigits + 1);
  } else if (name.state != EntryState::kOpen) {
    return std::nullopt;
  }
  if (file.size() != kIdDigits || !IsHex(file)) return std::nullopt;
  name.id = std::string(file);
  return name;
}

std::string EncodeEntry(const v1::SubmitResultRequest& header, std::string_view body) {
  const std::string bytes = header.SerializeAsString();
  std::string entry(kMagic);
  AppendLittleEndian(static_cast<uint32_t>(bytes.size()), &entry);
  AppendLittleEndian(Crc32c(bytes), &entry);
  entry.append(bytes).append(body);
  return entry;
}

bool IsProvenLoss(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsOutOfRange(status);
}

absl::StatusOr<v1::SubmitResultRequest> ReadEntryHeader(FileOps& ops, const std::string& path) {
  auto entry = OpenEntry(ops, path);
  if (absl::IsDataLoss(entry.status())) entry = OpenEntry(ops, path);
  if (!entry.ok()) return entry.status();
  v1::SubmitResultRequest header;
  if (!header.ParseFromString(entry->header)) {
    return errors::SpoolDamaged(path, "its header cannot be read");
  }
  return header;
}

absl::StatusOr<std::string> ReadEntryBody(FileOps& ops, const std::string& path) {
  ASSIGN_OR_RETURN(const auto entry, OpenEntry(ops, path));
  const auto begin = static_cast<int64_t>(kPrefix + entry.header.size());
  ASSIGN_OR_RETURN(const auto size, entry.file->Size());
  std::string body(static_cast<size_t>(size - begin), '\0');
  ASSIGN_OR_RETURN(const auto n, entry.file->ReadAt(body, begin));
  body.resize(n);
  return body;
}

}  // namespace muster
