// What a node knows of itself and its fleet since it joined.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_NODE_FOLDER_H_
#define MUSTER_SERVICES_AGENT_ATTACH_NODE_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/identity/certificate.h"

namespace muster {

// The folder that `muster node join` made (services/agent/joining/join_fleet.h). A plain value.
struct NodeFolder {
  std::string path;
  std::string fleet;
  std::string node;
  std::vector<std::string> relay_targets;
  Certificate command_ca;

  // Reads node.json and command-ca.pem. FAILED_PRECONDITION (NOT_JOINED) if there is none, or it is
  // from a time before relays; INVALID_ARGUMENT (NODE_FOLDER_DAMAGED) if it cannot be read.
  static absl::StatusOr<NodeFolder> Load(const std::string& path);

  std::string uri() const;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_NODE_FOLDER_H_
