// Opens any bytes as a journal. One that opens takes another record, which exists afterwards.
//
// Mutations seldom meet a checksum. Input with an even first byte is therefore a list of frames: a
// length, "unsynced" and a payload each, which get their checksums here. The rest of it follows as
// it is.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "services/common/base/simulated_disk.h"
#include "services/common/journal/frame.h"
#include "services/common/journal/journal.h"

namespace {

constexpr muster::JournalHeader kHeader = {
    .salt = 1, .max_size = 1 << 20, .max_record = 64, .max_unsynced = 256};

std::string JournalOf(std::string_view input) {
  std::string journal = muster::EncodeJournalHeader(kHeader);
  while (input.size() >= 2) {
    const size_t length = static_cast<uint8_t>(input[0]) % 80;
    const uint32_t unsynced = static_cast<uint8_t>(input[1]);
    input.remove_prefix(2);
    if (length > input.size()) break;
    const auto position = static_cast<int64_t>(journal.size());
    journal += length == 0
                   ? muster::EncodeSyncMark(kHeader, position)
                   : muster::EncodeFrame(kHeader, position, unsynced, input.substr(0, length));
    input.remove_prefix(length);
  }
  return journal.append(input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string bytes = data[0] % 2 == 0 ? JournalOf(input) : std::string(input);
  muster::SimulatedDisk disk;
  if (!disk.MakeFolder("/d").ok()) std::abort();
  {
    auto file = disk.Create("/d/journal");
    if (!file.ok()) std::abort();
    if (!bytes.empty() && !(*file)->WriteAt(bytes, 0).ok()) std::abort();
  }
  const auto ignore = [](std::string_view, int64_t) { return absl::OkStatus(); };
  (void)muster::Journal::Read(disk, "/d/journal", ignore);
  {
    auto journal = muster::Journal::Open(disk, "/d/journal", ignore);
    if (!journal.ok()) return 0;
    if (!(*journal)->Append("last").ok() || !(*journal)->Sync().ok()) return 0;
  }
  std::string last;
  const auto end = muster::Journal::Read(disk, "/d/journal", [&](std::string_view record, int64_t) {
    last = record;
    return absl::OkStatus();
  });
  if (!end.ok() || last != "last") std::abort();
  return 0;
}
