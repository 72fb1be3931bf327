#include "cli/commands/node_presence.h"

#include "cli/output/status_json.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

// The loss must be older than the attachment: a frozen agent is attached for a while.
bool IsIdle(const v1::EnrolledNode& enrolled, const v1::Node& node,
            const std::optional<AttachedMap>& attached) {
  if (!attached) return false;
  const auto child = attached->find(enrolled.name());
  if (child == attached->end() || !child->second.attached()) return false;
  return node.presence() == v1::PRESENCE_OFFLINE ||
         (node.presence() == v1::PRESENCE_LOST &&
          FromProto(child->second.change_time()) > FromProto(node.presence_since()));
}

}  // namespace

std::string KnownPresence(const v1::Node* node) {
  return node == nullptr ? "" : PresenceWord(node->presence());
}

const v1::Node* FindNode(const PresenceMap& nodes, const std::string& name) {
  const auto found = nodes.find(name);
  return found == nodes.end() ? nullptr : &found->second;
}

std::string PresenceOf(const v1::EnrolledNode& enrolled,
                       const std::optional<PresenceMap>& presences,
                       const std::optional<AttachedMap>& attached) {
  if (enrolled.revoked()) return "revoked";
  if (enrolled.is_relay()) return "-";  // relays send no heartbeats
  if (!presences) return "?";
  const v1::Node* node = FindNode(*presences, enrolled.name());
  const std::string presence = KnownPresence(node);
  if (presence.empty()) return "-";
  return IsIdle(enrolled, *node, attached) ? "idle" : presence;
}

}  // namespace muster::cli
