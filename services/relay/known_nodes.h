// Who was attached, remembered over a restart: a node that is away is told from one that never was.
#ifndef MUSTER_SERVICES_RELAY_KNOWN_NODES_H_
#define MUSTER_SERVICES_RELAY_KNOWN_NODES_H_

#include <string>

#include "absl/status/status.h"
#include "services/common/base/file_ops.h"
#include "services/relay/tree/tree.h"

namespace muster {

// Takes what `path` holds into the tree. OK if there is no file.
absl::Status LoadKnownNodes(FileOps& files, const std::string& path, const std::string& fleet,
                            Tree& tree);

// Replaces the file. It holds an AttachRequest.Below, without statements.
absl::Status StoreKnownNodes(FileOps& files, const std::string& path, const Tree& tree);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_KNOWN_NODES_H_
