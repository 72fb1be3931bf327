// Drops job records that a relay may not deliver.
#ifndef MUSTER_SERVICES_RELAY_JOBS_RECORD_FILTER_H_
#define MUSTER_SERVICES_RELAY_JOBS_RECORD_FILTER_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "muster/v1/jobs.pb.h"
#include "services/relay/topology/topology_view.h"

namespace muster {

// A child relay delivers records of its descendants only. Records of other nodes are forged, or of
// a node that has just moved to another relay: that node sends them again on its new route.
// Thread-safe. The topology outlives it.
class RecordFilter {
 public:
  explicit RecordFilter(const TopologyView& topology) : topology_(topology) {}

  // Removes and logs the records of nodes that are not descendants of the child relay.
  void Apply(const std::string& relay, v1::JobRecords* records);

  // The number of removed records.
  int64_t removed() const { return removed_; }

 private:
  const TopologyView& topology_;
  std::atomic<int64_t> removed_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_RECORD_FILTER_H_
