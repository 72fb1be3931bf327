// What is known of the bytes of a staged file, kept beside it.
//
// The log has two places for a mark and, after them, a list of ranges; each record is 32 bytes,
// little-endian, with a checksum of its own. A mark says: everything up to here was synced, and
// this is the checksum of all of it. A range says: these bytes, which follow the mark and the
// ranges before it, have this checksum. Marks are written in turn into the two places, so that one
// always holds; with each mark the list begins anew, so the log stays small. After a crash the
// bytes up to the newest mark are trusted, the ranges after it are read and compared, the rest is
// cut off.
#ifndef MUSTER_SERVICES_COMMON_BLOB_FILES_CHUNK_LOG_H_
#define MUSTER_SERVICES_COMMON_BLOB_FILES_CHUNK_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

inline constexpr int64_t kChunkRecordSize = 32;
inline constexpr int64_t kMarkPlaces[] = {0, 512};  // in different sectors: one tear spares one
inline constexpr int64_t kRangesBegin = 1024;
inline constexpr int64_t kMaxRanges = 65'536;  // then a mark is due
inline constexpr int64_t kMaxChunkLogSize = kRangesBegin + kMaxRanges * kChunkRecordSize;

struct ChunkRecord {
  enum class Kind : uint32_t { kRange = 1, kMark = 2 };

  Kind kind = Kind::kRange;
  uint32_t length = 0;  // kRange
  int64_t offset = 0;   // kRange: where it begins; kMark: how many bytes are durable
  uint32_t crc32c = 0;  // kRange: of the range; kMark: of everything before `offset`
};

std::string EncodeChunkRecord(const ChunkRecord& record);

struct ChunkLogContent {
  ChunkRecord mark{ChunkRecord::Kind::kMark};  // the newest; at 0 if there is none
  int mark_place = 1;               // where it stands: the next one goes to the other place
  std::vector<ChunkRecord> ranges;  // after the mark, in order, without gaps
};

// Reads a log as far as it holds: up to the first range that is damaged or does not continue.
ChunkLogContent DecodeChunkLog(std::string_view log);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BLOB_FILES_CHUNK_LOG_H_
