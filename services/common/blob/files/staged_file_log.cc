#include "services/common/blob/files/staged_file_log.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "services/common/base/crc32c.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "the log is written little-endian");

// A record as stored on the disk.
struct Stored {
  uint32_t kind;
  uint32_t length;
  int64_t offset;
  uint32_t crc32c;
  uint32_t spare[2];
  uint32_t check;  // CRC32C of the preceding fields
};
static_assert(sizeof(Stored) == kChunkRecordSize);

uint32_t CheckOf(const Stored& stored) {
  return ExtendCrc32c(0, {reinterpret_cast<const char*>(&stored), offsetof(Stored, check)});
}

std::optional<ChunkRecord> DecodeAt(std::string_view log, int64_t place, ChunkRecord::Kind kind) {
  Stored stored;
  if (static_cast<int64_t>(log.size()) < place + kChunkRecordSize) return std::nullopt;
  std::memcpy(&stored, log.data() + place, sizeof(stored));
  if (CheckOf(stored) != stored.check) return std::nullopt;
  if (stored.kind != static_cast<uint32_t>(kind) || stored.offset < 0) return std::nullopt;
  return ChunkRecord{kind, stored.length, stored.offset, stored.crc32c};
}

}  // namespace

std::string EncodeChunkRecord(const ChunkRecord& record) {
  Stored stored = {static_cast<uint32_t>(record.kind), record.length, record.offset, record.crc32c};
  stored.check = CheckOf(stored);
  return std::string(reinterpret_cast<const char*>(&stored), sizeof(stored));
}

StagedFileLogContent DecodeStagedFileLog(std::string_view log) {
  StagedFileLogContent content;
  for (const int place : {0, 1}) {
    const auto mark = DecodeAt(log, kMarkPlaces[place], ChunkRecord::Kind::kMark);
    if (mark && mark->offset >= content.mark.offset) {
      content.mark = *mark;
      content.mark_place = place;
    }
  }
  // Ranges of an earlier mark may remain in the log: their offsets precede this mark.
  int64_t end = content.mark.offset;
  for (int64_t place = kRangesBegin;; place += kChunkRecordSize) {
    const auto range = DecodeAt(log, place, ChunkRecord::Kind::kRange);
    if (!range || range->offset != end || range->length > INT64_MAX - end) return content;
    content.ranges.push_back(*range);
    end += range->length;
  }
}

}  // namespace muster
