// The names in certificates: who somebody is.
//
// Every certificate of a Muster fleet carries exactly one URI, and every right follows from that
// URI alone (never from a subject or a DNS name):
//
//   spiffe://FLEET/service/ROLE/NAME        a service; ROLE is aggregator, status, gateway or relay
//   spiffe://FLEET/user/NAME                a person at the CLI or the REST API: an operator
//   spiffe://FLEET/node/NAME                an enrolled node
//   spiffe://RUN.FLEET/plugin/P/node/N      what delivers one result of one run
//   spiffe://RUN.FLEET/plugin/P             what delivers for any planned node of P ("node
//   unproven") spiffe://RUN.FLEET/listener             the server of a run's listener for old
//   clients spiffe://RUN.FLEET/viewer               who may see the status of the run, and nothing
//   else
//
// FLEET is the fleet's trust domain, RUN a run id. The run stands in the host because a name
// constraint in a run CA's certificate can see the host and nothing else of a URI.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_IDENTITY_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_IDENTITY_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// The node of results that belong to no node: those of a plugin that runs once.
inline constexpr std::string_view kGlobalNode = "global";

enum class ServiceRole { kAggregator, kStatus, kGateway, kRelay };

struct ServiceIdentity {
  ServiceRole role = ServiceRole::kAggregator;
  std::string name;
  bool operator==(const ServiceIdentity&) const = default;
};

struct UserIdentity {
  std::string name;
  bool operator==(const UserIdentity&) const = default;
};

// An enrolled node; never kGlobalNode.
struct NodeIdentity {
  std::string name;
  bool operator==(const NodeIdentity&) const = default;
};

// The right to deliver the result of one (run, plugin, node). The node may be kGlobalNode.
struct RunNodeIdentity {
  std::string run;
  std::string plugin;
  std::string node;
  bool operator==(const RunNodeIdentity&) const = default;
};

// The right to deliver for any planned node of one (run, plugin).
struct RunPluginIdentity {
  std::string run;
  std::string plugin;
  bool operator==(const RunPluginIdentity&) const = default;
};

// The HTTPS server through which old clients reach one run.
struct RunListenerIdentity {
  std::string run;
  bool operator==(const RunListenerIdentity&) const = default;
};

// Who may see the status of one run.
struct RunViewerIdentity {
  std::string run;
  bool operator==(const RunViewerIdentity&) const = default;
};

// The names that the fleet's intermediate signs, and those that only a run's own CA signs.
using FleetName = std::variant<ServiceIdentity, UserIdentity, NodeIdentity>;
using RunName =
    std::variant<RunNodeIdentity, RunPluginIdentity, RunListenerIdentity, RunViewerIdentity>;

// Who holds a certificate. A plain value.
struct Identity {
  using Name = std::variant<ServiceIdentity, UserIdentity, NodeIdentity, RunNodeIdentity,
                            RunPluginIdentity, RunListenerIdentity, RunViewerIdentity>;
  std::string fleet;
  Name name;
  bool operator==(const Identity&) const = default;
};

// What the authorisation table speaks of. A user is an operator.
enum class Role {
  kOperator,
  kAggregator,
  kStatus,
  kGateway,
  kRelay,
  kNode,
  kRunNode,
  kRunPlugin,
  kRunListener,
  kRunViewer,
};

Role RoleOf(const Identity& identity);
Role RoleOf(ServiceRole role);

// "operator", "aggregator", ..., "run node", for messages and logs.
std::string_view RoleName(Role role);

// "aggregator", "status", "gateway", "relay": as in a URI.
std::string_view ServiceRoleName(ServiceRole role);
std::optional<ServiceRole> ParseServiceRole(std::string_view name);

// The run that an identity is bound to; nothing for one that belongs to the fleet.
std::optional<std::string_view> RunOf(const Identity& identity);

// Exactly 16 lower-case hexadecimal digits.
bool IsRunId(std::string_view text);

// A trust domain: dot-separated labels of lower-case letters, digits and inner hyphens, at most
// 236 characters, so that a run id fits before it. OK or INVALID_ARGUMENT that names the fault.
absl::Status CheckFleet(std::string_view fleet);

// The host part of a run's names: RUN.FLEET.
std::string RunHost(std::string_view run, std::string_view fleet);

// The identity that `uri` names within `fleet`. Structural and exact to the byte: no other case,
// no percent-encoding, user, port, query, fragment, empty segment or trailing slash is taken for
// another spelling. PERMISSION_DENIED with reason IDENTITY_MALFORMED, or IDENTITY_FOREIGN for a
// well-formed URI of another trust domain.
absl::StatusOr<Identity> ParseIdentity(std::string_view uri, std::string_view fleet);

// The identity in our own certificate, which tells the fleet as well: the host of its URI, after
// the run id where the path is a run's. Never use it for a peer's: that one's fleet has to be
// known.
absl::StatusOr<Identity> ParseOwnIdentity(std::string_view uri);

// The URI of an identity. INVALID_ARGUMENT if one of its names could not be read back.
absl::StatusOr<std::string> ToUri(const Identity& identity);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_IDENTITY_H_
