#include "services/agent/attach/node_folder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/pem_files.h"
#include "services/common/joining/member_file.h"

namespace muster {
absl::StatusOr<NodeFolder> NodeFolder::Load(const std::string& path) {
  ASSIGN_OR_RETURN(auto member, ReadMemberFile(path));
  if (member.is_relay)
    return errors::NotANodeFolder(path, "is the folder of a relay, not of a node");
  member.relay_targets = TargetsByLink(member.relay_targets, member.link);
  if (member.relay_targets.empty())
    return errors::NotANodeFolder(path, "names no relay to attach to");
  const auto ca = ReadChainFile(absl::StrCat(path, "/command-ca.pem"));
  if (absl::IsNotFound(ca.status())) {
    return errors::NotANodeFolder(path, "holds no command-ca.pem, so no command can be verified");
  }
  if (!ca.ok()) return ca.status();
  return NodeFolder{path, std::move(member.fleet), std::move(member.name),
                    std::move(member.relay_targets), ca->front()};
}

std::string NodeFolder::uri() const { return ToUri({fleet, NodeIdentity{node}}).value(); }

}  // namespace muster
