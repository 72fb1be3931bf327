// The attachment and the presence of agents, as `muster nodes` shows it.
#ifndef MUSTER_CLI_COMMANDS_NODE_PRESENCE_H_
#define MUSTER_CLI_COMMANDS_NODE_PRESENCE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/output/console.h"
#include "cli/output/json_view.h"
#include "cli/rpc/attached.h"
#include "muster/v1/enrollment.pb.h"
#include "muster/v1/status.pb.h"

namespace muster::cli {

using PresenceMap = std::map<std::string, v1::Node>;  // by node

// Returns the relay to which the node is attached, or "no"; "?" without `attached`.
std::string RelayOf(const v1::EnrolledNode& node, const std::optional<AttachedMap>& attached);

// Returns the relay of an attached node, or "no, since 21:20:09 UTC (it was attached to
// r1)", or "no, and not within the last week" if the root relay does not know it.
std::string AttachmentText(const v1::EnrolledNode& node, const std::optional<AttachedMap>& attached,
                           absl::Time now);

// Returns the link of an attached node: "direct", or the description of its tunnel in its own
// words. Empty for another node, and without `attached`.
std::string LinkOf(const v1::EnrolledNode& node, const std::optional<AttachedMap>& attached);

// Returns what the node told its relay of itself last; null if that is not known.
const v1::NodeInfo* InfoOf(const v1::EnrolledNode& node,
                           const std::optional<AttachedMap>& attached);

// Adds the attachment of the node and its information.
void AddAttachment(const v1::EnrolledNode& node, const std::optional<AttachedMap>& attached,
                   Json* json);

// Returns the presence as a word, empty for a node that never sent heartbeats: agents send them
// while they work for a run. `node` is null if the status service does not know it.
std::string KnownPresence(const v1::Node* node);

// Returns the node of this name, or null.
const v1::Node* FindNode(const PresenceMap& nodes, const std::string& name);

// Returns the presence for a table. It is "idle" if the agent is offline, suspect or lost by its
// last heartbeats, but attached since: an attached agent sends them only while it works for a run.
// Without `presences` the status service did not answer, without `attached` the root relay.
std::string PresenceOf(const v1::EnrolledNode& enrolled,
                       const std::optional<PresenceMap>& presences,
                       const std::optional<AttachedMap>& attached);

// The same, with the time since when the presence applies, if it is known.
std::string PresenceWithTime(const v1::EnrolledNode& enrolled,
                             const std::optional<PresenceMap>& presences,
                             const std::optional<AttachedMap>& attached, absl::Time now);

// Returns whether two agents use the identity of the node, as far as the services know; nullopt if
// no service answered. False for a revoked node: no agent can use its identity.
std::optional<bool> HasDuplicateAgent(const v1::EnrolledNode& enrolled,
                                      const std::optional<PresenceMap>& presences,
                                      const std::optional<AttachedMap>& attached);

// Prints the nodes with two agents, and the next step. Prints nothing if there are none.
void WarnOfDuplicateAgents(Console& console, const std::vector<std::string>& nodes);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_NODE_PRESENCE_H_
