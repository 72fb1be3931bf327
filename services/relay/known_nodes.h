// The known nodes, stored over a restart: a detached node differs from an unknown one.
#ifndef MUSTER_SERVICES_RELAY_KNOWN_NODES_H_
#define MUSTER_SERVICES_RELAY_KNOWN_NODES_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/sha256.h"
#include "services/relay/topology/topology.h"

namespace muster {

// The file holds an AttachRequest.TopologyUpdate, without statements. Not thread-safe.
class KnownNodes {
 public:
  // `clock` outlives the object.
  KnownNodes(FileOps& files, std::string path, const Clock& clock)
      : files_(files), path_(std::move(path)), clock_(clock) {}

  // Adds the entries of the file to the topology. Entries that were attached become detached at
  // `now`. Returns OK without a file, and after it moved a damaged one to "<path>.damaged".
  absl::Status Load(const std::string& fleet, absl::Time now, Topology& topology);

  // Replaces the file if the topology has changed.
  absl::Status Store(const TopologyView& topology);

  // Stores the topology if its number of entries has changed, and else every 10 s. To be called
  // every second, so that a kill loses the nodes of the last second only. Takes at most a twentieth
  // of the time: a large file is stored less often.
  absl::Status Tick(const TopologyView& topology);

 private:
  FileOps& files_;
  const std::string path_;
  const Clock& clock_;
  size_t entries_ = 0;                                      // of the last Tick that stored
  absl::Duration store_after_ = -absl::InfiniteDuration();  // monotonic, as the next
  absl::Duration store_always_ = -absl::InfiniteDuration();
  Sha256Digest stored_{};
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_KNOWN_NODES_H_
