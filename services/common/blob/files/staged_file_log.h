// The log of a staged file: it states the bytes that can be trusted after a crash.
//
// The log has two slots for marks, followed by a list of ranges. Each record is 32 bytes,
// little-endian, with its own checksum. A mark states that all bytes up to its offset were synced,
// with their checksum. A range states the checksum of bytes that follow the mark and the earlier
// ranges. Marks are written to the two slots in turn, so one is always valid. Each mark starts a
// new list, so the log stays small. After a crash the bytes up to the newest mark are trusted, the
// ranges after it are read and verified, and the rest is truncated.
#ifndef MUSTER_SERVICES_COMMON_BLOB_FILES_STAGED_FILE_LOG_H_
#define MUSTER_SERVICES_COMMON_BLOB_FILES_STAGED_FILE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

inline constexpr int64_t kChunkRecordSize = 32;
inline constexpr int64_t kMarkPlaces[] = {
    0, 512};  // in different sectors, so that a torn write damages one
inline constexpr int64_t kRangesBegin = 1024;
inline constexpr int64_t kMaxRanges = 65'536;  // then a new mark is written
inline constexpr int64_t kMaxStagedFileLogSize = kRangesBegin + kMaxRanges * kChunkRecordSize;

struct ChunkRecord {
  enum class Kind : uint32_t { kRange = 1, kMark = 2 };

  Kind kind = Kind::kRange;
  uint32_t length = 0;  // kRange
  int64_t offset = 0;   // kRange: its offset; kMark: the number of durable bytes
  uint32_t crc32c = 0;  // kRange: of the range; kMark: of all bytes before `offset`
};

std::string EncodeChunkRecord(const ChunkRecord& record);

struct StagedFileLogContent {
  ChunkRecord mark{ChunkRecord::Kind::kMark};  // the newest mark; offset 0 if there is none
  int mark_place = 1;               // the slot of the mark; the next mark goes to the other one
  std::vector<ChunkRecord> ranges;  // after the mark, in order, without gaps
};

// Decodes a log up to the first range that is damaged or leaves a gap.
StagedFileLogContent DecodeStagedFileLog(std::string_view log);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_FILES_STAGED_FILE_LOG_H_
