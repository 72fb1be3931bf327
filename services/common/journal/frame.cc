// The grammar of a journal. Numbers are little-endian, checksums are CRC32C.
//
//   journal  := header frame* mark?
//   header   := magic[8] salt:u64 max_size:i64 max_record:u32 max_unsynced:u32 check:u32 zero:u32
//   frame    := length:u32 unsynced:u32 payload_crc:u32 header_crc:u32 payload[length]
//
//   check       checksum of the preceding 32 bytes
//   length      from 1 to max_record; 0 in a mark
//   unsynced    bytes between the position up to which the journal was synced when the frame was
//               written, and the frame: at most max_unsynced
//   header_crc  checksum of salt, the frame's position in the file (i64), and the preceding 12
//   bytes
//
// The salt is random. With it and the position in header_crc, a payload that looks like a frame, or
// an old frame at another position, is never accepted as a frame of this journal.
//
// A crash can damage only the bytes that were not synced: the tail. `unsynced` distinguishes a torn
// tail from damage: if a frame after the first bad one was written after a sync beyond the bad one,
// then the bad one was durable. For the records of the last sync, that frame is the mark: a frame
// without payload, which is written after the sync. The next frame overwrites it. The mark itself
// is not synced: if power is lost before the system has written it, these records count as
// unsynced.
#include "services/common/journal/frame.h"

#include <bit>
#include <cstring>

#include "services/common/base/crc32c.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "journals are written little-endian");

constexpr std::string_view kMagic = "MUSTERJ1";
constexpr uint32_t kMostPerRecord = uint32_t{64} << 20;

struct StoredHeader {
  char magic[8];
  uint64_t salt;
  int64_t max_size;
  uint32_t max_record;
  uint32_t max_unsynced;
  uint32_t check;
  uint32_t zero;
};
static_assert(sizeof(StoredHeader) == kJournalHeaderSize);

struct StoredFrame {
  uint32_t length;
  uint32_t unsynced;
  uint32_t payload_crc;
  uint32_t header_crc;
};
static_assert(sizeof(StoredFrame) == kFrameHeaderSize);

template <typename T>
std::string_view BytesOf(const T& value, size_t size = sizeof(T)) {
  return {reinterpret_cast<const char*>(&value), size};
}

uint32_t CheckOf(const StoredHeader& stored) {
  return Crc32c(BytesOf(stored, offsetof(StoredHeader, check)));
}

uint32_t CheckOf(const JournalHeader& journal, int64_t position, const StoredFrame& stored) {
  uint32_t crc = ExtendCrc32c(0, BytesOf(journal.salt));
  crc = ExtendCrc32c(crc, BytesOf(position));
  return ExtendCrc32c(crc, BytesOf(stored, offsetof(StoredFrame, header_crc)));
}

}  // namespace

std::string EncodeJournalHeader(const JournalHeader& header) {
  StoredHeader stored = {
      {}, header.salt, header.max_size, header.max_record, header.max_unsynced, 0, 0};
  std::memcpy(stored.magic, kMagic.data(), kMagic.size());
  stored.check = CheckOf(stored);
  return std::string(BytesOf(stored));
}

std::optional<JournalHeader> DecodeJournalHeader(std::string_view bytes) {
  StoredHeader stored;
  if (bytes.size() < sizeof(stored)) return std::nullopt;
  std::memcpy(&stored, bytes.data(), sizeof(stored));
  if (std::string_view(stored.magic, kMagic.size()) != kMagic) return std::nullopt;
  if (CheckOf(stored) != stored.check || stored.max_record > kMostPerRecord) return std::nullopt;
  return JournalHeader{stored.salt, stored.max_size, stored.max_record, stored.max_unsynced};
}

std::string EncodeFrame(const JournalHeader& journal, int64_t position, uint32_t unsynced,
                        std::string_view payload) {
  StoredFrame stored = {static_cast<uint32_t>(payload.size()), unsynced, Crc32c(payload), 0};
  stored.header_crc = CheckOf(journal, position, stored);
  std::string frame(BytesOf(stored));
  frame += payload;
  return frame;
}

std::string EncodeSyncMark(const JournalHeader& journal, int64_t position) {
  return EncodeFrame(journal, position, 0, "");
}

std::optional<FrameHeader> DecodeFrameHeader(const JournalHeader& journal, int64_t position,
                                             std::string_view bytes) {
  StoredFrame stored;
  if (bytes.size() < sizeof(stored)) return std::nullopt;
  std::memcpy(&stored, bytes.data(), sizeof(stored));
  if (stored.length > journal.max_record || stored.unsynced > journal.max_unsynced) {
    return std::nullopt;
  }
  if (CheckOf(journal, position, stored) != stored.header_crc) return std::nullopt;
  return FrameHeader{stored.length, stored.unsynced, stored.payload_crc};
}

}  // namespace muster
