#include "cli/commands/node_presence.h"

#include "absl/strings/str_cat.h"
#include "cli/commands/node_info_view.h"
#include "cli/output/format.h"
#include "cli/output/status_json.h"
#include "services/common/base/error.h"
#include "services/common/base/names.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

constexpr size_t kNamed = 10;

using Child = v1::ListAttachedResponse::Child;

// Returns null for a node that is not known to the root relay.
const Child* FindChild(const v1::EnrolledNode& node, const AttachedMap& attached) {
  const auto found = attached.find(node.name());
  return found == attached.end() ? nullptr : &found->second;
}

// The same for a node that is not attached now.
const Child* FindAttached(const v1::EnrolledNode& node, const AttachedMap& attached) {
  const Child* const child = FindChild(node, attached);
  return child != nullptr && child->attached() ? child : nullptr;
}

// An agent with work sends a heartbeat after it has attached. A frozen agent is attached for a
// while.
bool IsIdle(const v1::EnrolledNode& enrolled, const v1::Node& node,
            const std::optional<AttachedMap>& attached) {
  if (!attached) return false;
  const Child* const child = FindAttached(enrolled, *attached);
  if (child == nullptr) return false;
  if (node.presence() == v1::PRESENCE_OFFLINE) return true;
  const bool silent =
      node.presence() == v1::PRESENCE_SUSPECT || node.presence() == v1::PRESENCE_LOST;
  return silent && FromProto(child->change_time()) > FromProto(node.last_heartbeat());
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

std::string PresenceWithTime(const v1::EnrolledNode& enrolled,
                             const std::optional<PresenceMap>& presences,
                             const std::optional<AttachedMap>& attached, absl::Time now) {
  const std::string presence = PresenceOf(enrolled, presences, attached);
  const v1::Node* node = presences ? FindNode(*presences, enrolled.name()) : nullptr;
  // presence_since is the time of the presence that the status service reports.
  if (node == nullptr || presence != KnownPresence(node)) return presence;
  return absl::StrCat(presence, " since ", HumanTime(FromProto(node->presence_since()), now));
}

std::string RelayOf(const v1::EnrolledNode& node, const std::optional<AttachedMap>& attached) {
  if (!attached) return "?";
  const Child* const child = FindAttached(node, *attached);
  return child == nullptr ? "no" : child->relay();
}

std::string AttachmentText(const v1::EnrolledNode& node, const std::optional<AttachedMap>& attached,
                           absl::Time now) {
  const std::string relay = RelayOf(node, attached);
  if (relay != "no") return relay;
  const Child* const child = FindChild(node, *attached);
  if (child == nullptr) return "no, and not within the last week";
  return absl::StrCat("no, since ", HumanTime(FromProto(child->change_time()), now),
                      child->relay().empty()
                          ? ""
                          : absl::StrCat(" (it was attached to ", Printable(child->relay()), ")"));
}

std::string LinkOf(const v1::EnrolledNode& node, const std::optional<AttachedMap>& attached) {
  if (!attached) return "";
  const Child* const child = FindAttached(node, *attached);
  if (child == nullptr) return "";
  return child->link().empty() ? "direct" : child->link();
}

const v1::NodeInfo* InfoOf(const v1::EnrolledNode& node,
                           const std::optional<AttachedMap>& attached) {
  if (!attached) return nullptr;
  const Child* const child = FindChild(node, *attached);
  return child == nullptr || !child->has_info() ? nullptr : &child->info();
}

void AddAttachment(const v1::EnrolledNode& node, const std::optional<AttachedMap>& attached,
                   Json* json) {
  const std::string relay = RelayOf(node, attached);
  (*json)["attached"] = relay != "no";
  (*json)["relay"] = relay == "no" ? "" : relay;
  (*json)["link"] = LinkOf(node, attached);
  const v1::NodeInfo* const info = InfoOf(node, attached);
  (*json)["info"] = info == nullptr ? Json(nullptr) : ToJson(*info);
}

std::optional<bool> HasDuplicateAgent(const v1::EnrolledNode& enrolled,
                                      const std::optional<PresenceMap>& presences,
                                      const std::optional<AttachedMap>& attached) {
  if (enrolled.revoked()) return false;
  if (!presences && !attached) return std::nullopt;
  if (presences) {
    const v1::Node* sender = FindNode(*presences, enrolled.name());
    if (sender != nullptr && sender->duplicate_agent()) return true;
  }
  if (!attached) return false;
  const Child* const child = FindChild(enrolled, *attached);
  return child != nullptr && child->has_duplicate_agent_time();
}

void WarnOfDuplicateAgents(Console& console, const std::vector<std::string>& nodes) {
  if (nodes.empty()) return;
  PrintMessage(console, absl::StrCat("Two agents use the identity of ", ListNames(nodes, kNamed),
                                     "; the older one is refused."));
  PrintMessage(console, " next: " + NextStepOf(errors::DuplicateProcess("")));
}

}  // namespace muster::cli
