// The register's knowledge of a node that the topology does not contain.
#ifndef MUSTER_SERVICES_RELAY_TARGET_LOOKUP_H_
#define MUSTER_SERVICES_RELAY_TARGET_LOOKUP_H_

#include <grpcpp/channel.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/v1/enrollment.pb.h"

namespace muster {

// Interprets the aggregator's response to GetEnrolledNode. Returns OK for a node that may attach,
// TARGET_UNKNOWN (it never joined, was revoked or is a relay), or the error of the call.
absl::Status JudgeTarget(const std::string& name, const absl::Status& status,
                         const v1::EnrolledNode& found);

// Asks the aggregator, and interprets its response. Blocks until `deadline` at most.
absl::Status LookUpTarget(const std::shared_ptr<grpc::Channel>& aggregator, const std::string& name,
                          std::chrono::system_clock::time_point deadline);

// Asks the aggregator why nodes are unknown; empty for a node that may attach. Blocks until
// `deadline` at most: omits the remaining nodes after a failed call.
std::map<std::string, std::string, std::less<>> ExplainUnknownTargets(
    const std::shared_ptr<grpc::Channel>& aggregator, const std::vector<std::string>& names,
    std::chrono::system_clock::time_point deadline);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TARGET_LOOKUP_H_
