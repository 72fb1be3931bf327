// Identities: the names in certificates.
//
// Every certificate of a Muster fleet contains exactly one URI, and every right follows from that
// URI alone (never from a subject or a DNS name).
//
//   spiffe://FLEET/service/ROLE/NAME        a service; ROLE is aggregator, status, gateway or relay
//   spiffe://FLEET/user/NAME                an operator, at the command line or the REST API
//   spiffe://FLEET/node/NAME                an enrolled node.
//
//   spiffe://RUN.FLEET/plugin/P/node/N      delivers one result of one run
//   spiffe://RUN.FLEET/plugin/P             delivers for any planned node of P
//   spiffe://RUN.FLEET/listener             the server of a run's listener for legacy clients
//   spiffe://RUN.FLEET/viewer               reads the status of the run, and nothing else.
//
// FLEET is the fleet's trust domain, RUN a run id. The run is in the host, because the name
// constraint of a run CA applies only to the host of a URI.
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

// The node of results without a node: those of a plugin that runs once.
inline constexpr std::string_view kGlobalNode = "global";

enum class ServiceRole { kAggregator, kStatus, kGateway, kRelay, kJobs };

// The name of the root of the tree of relays.
inline constexpr std::string_view kRootRelay = "root";

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

// The HTTPS server through which legacy clients reach one run.
struct RunListenerIdentity {
  std::string run;
  bool operator==(const RunListenerIdentity&) const = default;
};

// The right to read the status of one run.
struct RunViewerIdentity {
  std::string run;
  bool operator==(const RunViewerIdentity&) const = default;
};

// The names that the fleet's intermediate signs, and the names that only a run CA signs.
using FleetName = std::variant<ServiceIdentity, UserIdentity, NodeIdentity>;
using RunName =
    std::variant<RunNodeIdentity, RunPluginIdentity, RunListenerIdentity, RunViewerIdentity>;

// The identity in a certificate. A plain value.
struct Identity {
  using Name = std::variant<ServiceIdentity, UserIdentity, NodeIdentity, RunNodeIdentity,
                            RunPluginIdentity, RunListenerIdentity, RunViewerIdentity>;
  std::string fleet;
  Name name;
  bool operator==(const Identity&) const = default;
};

// The roles of the authorisation table. A user is an operator.
enum class Role {
  kOperator,
  kAggregator,
  kStatus,
  kGateway,
  kRelay,
  kJobs,
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

// Returns "aggregator", "status", "gateway", "relay" or "jobs", as in a URI.
std::string_view ServiceRoleName(ServiceRole role);
std::optional<ServiceRole> ParseServiceRole(std::string_view name);

// Returns the run that an identity is bound to; nothing for an identity of the fleet.
std::optional<std::string_view> RunOf(const Identity& identity);

// Returns true for exactly 16 lower-case hexadecimal digits.
bool IsRunId(std::string_view text);

// Checks a trust domain: dot-separated labels of lower-case letters, digits and inner hyphens, at
// most 236 characters, so that a run id fits before it. Fails with INVALID_ARGUMENT and the fault.
absl::Status CheckFleet(std::string_view fleet);

// Returns the host part of a run's URIs: RUN.FLEET.
std::string RunHost(std::string_view run, std::string_view fleet);

// Parses the identity that `uri` names within `fleet`. The comparison is exact to the byte: other
// case, percent-encoding, user, port, query, fragment, empty segments and trailing slashes are
// rejected. Fails with PERMISSION_DENIED (IDENTITY_MALFORMED, or IDENTITY_FOREIGN for a well-formed
// URI of another trust domain).
absl::StatusOr<Identity> ParseIdentity(std::string_view uri, std::string_view fleet);

// Parses the identity in the certificate of this process, including the fleet: the host of its URI,
// without the run id if it is bound to a run. Must not be used for peers, whose fleet must be known
// in advance.
absl::StatusOr<Identity> ParseOwnIdentity(std::string_view uri);

// Returns the URI of an identity. Fails with INVALID_ARGUMENT if one of its names could not be
// parsed again.
absl::StatusOr<std::string> ToUri(const Identity& identity);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_IDENTITY_H_
