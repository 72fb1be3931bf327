// The addresses of the fleet on a machine that joined: one file in its folder.
//
//   node.json, or relay.json of a relay
//   {
//     "fleet": "fleet-0a1b2c3d.muster",
//     "node": "n1",                                 "relay" in relay.json
//     "aggregator_targets": ["10.0.0.5:7440"],
//     "status_targets": ["10.0.0.5:7441"],
//     "join_targets": ["10.0.0.5:7444"],            where its certificate is renewed
//     "token_targets": ["10.0.0.5:7444"],           those of its join token, asked after the others
//     "relay_targets": ["10.0.0.9:7445", "10.0.0.5:7445"],   to attach to, tried in turn
//     "link": "wss://proxy.example:443"             absent: auto
//   }
//
// join_targets, token_targets and relay_targets may end with tunnels: "wss://10.0.0.5:8002".
#ifndef MUSTER_SERVICES_COMMON_JOINING_MEMBER_FILE_H_
#define MUSTER_SERVICES_COMMON_JOINING_MEMBER_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

struct MemberFile {
  std::string fleet;
  std::string name;
  bool is_relay = false;
  std::vector<std::string> aggregator_targets;  // "host:port" all
  std::vector<std::string> status_targets;
  std::vector<std::string> join_targets;
  // From the join token, which no relay can change; asked after join_targets.
  std::vector<std::string> token_targets;
  std::vector<std::string> relay_targets;  // empty if the node joined with a version without relays
  // How this machine connects: empty or "auto": directly, and through tunnels where a proxy
  // prevents that; "direct": never through a tunnel; "wss://host:port": only through the tunnel of
  // this gateway.
  std::string link;
};

// Fails with INVALID_ARGUMENT (INVALID_LINK) unless `link` is one of these values.
absl::Status CheckLink(const std::string& link);

// Returns the targets that `link` permits, those without a tunnel first.
std::vector<std::string> TargetsByLink(const std::vector<std::string>& targets,
                                       const std::string& link);

// Reads node.json or relay.json in `folder`. Fails with FAILED_PRECONDITION: NOT_JOINED if neither
// exists, INVALID_MEMBER_FILE with the fault; as CheckLink does.
absl::StatusOr<MemberFile> ReadMemberFile(const std::string& folder);

// Replaces the file durably and atomically.
absl::Status WriteMemberFile(const std::string& folder, const MemberFile& member);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOINING_MEMBER_FILE_H_
