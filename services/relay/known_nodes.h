// The known nodes, stored over a restart: a detached node differs from an unknown one.
#ifndef MUSTER_SERVICES_RELAY_KNOWN_NODES_H_
#define MUSTER_SERVICES_RELAY_KNOWN_NODES_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/sha256.h"
#include "services/relay/topology/topology.h"

namespace muster {

// The file holds an AttachRequest.TopologyUpdate, without statements. Not thread-safe.
class KnownNodes {
 public:
  KnownNodes(FileOps& files, std::string path) : files_(files), path_(std::move(path)) {}

  // Adds the entries of the file to the topology. Entries that were attached become detached at
  // `now`. Returns OK without a file.
  absl::Status Load(const std::string& fleet, absl::Time now, Topology& topology);

  // Replaces the file if the topology has changed.
  absl::Status Store(const Topology& topology);

 private:
  FileOps& files_;
  const std::string path_;
  Sha256Digest stored_{};
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_KNOWN_NODES_H_
