// What a relay knows of one shared file, and how it lies on the disk: one small file each.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_RECORD_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "absl/status/statusor.h"
#include "muster/v1/shares.pb.h"

namespace muster {

// In order of source, target and id.
using ShareName = std::tuple<std::string, std::string, std::string>;
inline ShareName NameOf(const v1::ShareKey& key) { return {key.source(), key.target(), key.id()}; }

enum class ShareStage {
  kIncoming,    // its bytes are arriving
  kHeld,        // its bytes are here
  kPassedUp,    // the parent has it
  kPassedDown,  // a relay below has it
  kEnded,       // refused, expired or removed
};

// A value.
struct ShareRecord {
  std::string id;      // 32 hex digits, of this relay's own: names its files
  uint64_t order = 0;  // the later of two of one key is the one that counts
  ShareStage stage = ShareStage::kIncoming;
  bool from_parent = false;  // it came from above: the parent hears what becomes of it
  bool unreported = false;   // the parent has not heard of its state yet
  bool removing = false;     // the relay below is to remove it
  // The relay below that has it; while it arrives: who may send it.
  std::string child;
  v1::Share share;
  uint64_t revision = 0;  // of this life alone: rises with each change

  const v1::ShareKey& key() const { return share.file().key(); }
  bool has_bytes() const { return stage == ShareStage::kHeld || stage == ShareStage::kIncoming; }
  std::string blob() const { return "shares/" + id; }
};

// Who may send the bytes: a node, a relay below, or the parent.
inline std::string NodeOpener(const std::string& node) { return "node/" + node; }
inline std::string RelayOpener(const std::string& relay) { return "relay/" + relay; }
inline constexpr char kParentOpener[] = "parent";

// The content of its file.
std::string FormatShareRecord(const ShareRecord& record);
// DATA_LOSS if it is none.
absl::StatusOr<ShareRecord> ParseShareRecord(std::string_view id, std::string_view content);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_RECORD_H_
