#include "services/status/board/sender_precedence.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

bool NamesNode(const Sender& sender) {
  return absl::EndsWith(sender.uri(), absl::StrCat("/node/", sender.node()));
}

bool IsLive(const Sender& sender) {
  return sender.presence() != v1::PRESENCE_LOST && sender.presence() != v1::PRESENCE_OFFLINE;
}

}  // namespace

bool YieldsTo(const Sender* present, const Sender& sender) {
  return present != nullptr && NamesNode(*present) && !NamesNode(sender) && IsLive(*present);
}

}  // namespace muster
