// The bytes of a journal: its header and the headers of its records. The grammar is in frame.cc.
#ifndef MUSTER_SERVICES_COMMON_JOURNAL_FRAME_H_
#define MUSTER_SERVICES_COMMON_JOURNAL_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

// The first bytes of a journal. Writer and reader read the limits from here, so that they agree.
struct JournalHeader {
  uint64_t salt = 0;
  int64_t max_size = 0;       // of the file
  uint32_t max_record = 0;    // of a record's payload
  uint32_t max_unsynced = 0;  // of frames that are written and not synced
};

inline constexpr size_t kJournalHeaderSize = 40;
inline constexpr size_t kFrameHeaderSize = 16;

std::string EncodeJournalHeader(const JournalHeader& header);

// Returns nothing if `bytes` do not begin with a complete, undamaged header.
std::optional<JournalHeader> DecodeJournalHeader(std::string_view bytes);

struct FrameHeader {
  uint32_t length = 0;       // of the payload
  uint32_t unsynced = 0;     // bytes between the last synced position and this frame
  uint32_t payload_crc = 0;  // CRC32C
};

// Returns the frame with `payload` for `position`.
std::string EncodeFrame(const JournalHeader& journal, int64_t position, uint32_t unsynced,
                        std::string_view payload);

// Returns the mark of a sync of all bytes before `position`: a frame without payload.
std::string EncodeSyncMark(const JournalHeader& journal, int64_t position);

// Returns nothing if `bytes` do not begin with the undamaged header of a frame at `position`. The
// length of a sync mark is 0.
std::optional<FrameHeader> DecodeFrameHeader(const JournalHeader& journal, int64_t position,
                                             std::string_view bytes);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOURNAL_FRAME_H_
