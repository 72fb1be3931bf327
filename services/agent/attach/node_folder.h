// The identity and the relays of a node that joined.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_NODE_FOLDER_H_
#define MUSTER_SERVICES_AGENT_ATTACH_NODE_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/identity/certificate.h"

namespace muster {

// The folder that `muster node join` made (services/common/joining/join_fleet.h). A plain value.
struct NodeFolder {
  std::string path;
  std::string fleet;
  std::string node;
  std::vector<std::string> relay_targets;
  Certificate command_ca;

  // FAILED_PRECONDITION (NOT_JOINED) if no node joined into this folder, or only a version without
  // relays and commands did; the errors of ReadMemberFile and ReadChainFile.
  static absl::StatusOr<NodeFolder> Load(const std::string& path);

  std::string uri() const;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_NODE_FOLDER_H_
