// Decodes any bytes as the log of a staged file. The ranges follow the mark without gaps.
//
// Mutations seldom meet a checksum. Input with an even first byte is therefore a list of records,
// which get their checksums and places here: two marks, and then ranges.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "services/common/blob/files/staged_file_log.h"

namespace {

std::string LogOf(std::string_view input) {
  std::string log;
  for (int place = 0; input.size() >= 16; ++place) {
    muster::ChunkRecord record;
    record.kind = place < 2 ? muster::ChunkRecord::Kind::kMark : muster::ChunkRecord::Kind::kRange;
    std::memcpy(&record.offset, input.data(), 8);
    std::memcpy(&record.length, input.data() + 8, 4);
    std::memcpy(&record.crc32c, input.data() + 12, 4);
    input.remove_prefix(16);
    const int64_t at = place < 2 ? muster::kMarkPlaces[place]
                                 : muster::kRangesBegin + (place - 2) * muster::kChunkRecordSize;
    log.resize(at);
    log += muster::EncodeChunkRecord(record);
  }
  return log;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto content =
      muster::DecodeStagedFileLog(data[0] % 2 == 0 ? LogOf(input) : std::string(input));
  int64_t end = content.mark.offset;
  if (end < 0) std::abort();
  for (const muster::ChunkRecord& range : content.ranges) {
    if (range.offset != end || range.length > INT64_MAX - end) std::abort();
    end += range.length;
  }
  return 0;
}
