// The register's knowledge of a node that the topology does not contain.
#ifndef MUSTER_SERVICES_RELAY_TARGET_LOOKUP_H_
#define MUSTER_SERVICES_RELAY_TARGET_LOOKUP_H_

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "muster/v1/enrollment.pb.h"

namespace muster {

// Interprets the aggregator's response to GetEnrolledNode. Returns OK for a node that may attach,
// TARGET_UNKNOWN (it never joined, was revoked or is a relay), or the error of the call.
absl::Status JudgeTarget(const std::string& name, const absl::Status& status,
                         const v1::EnrolledNode& found);

// Asks the aggregator, and interprets its response. Blocks, at most for the given time.
absl::Status LookUpTarget(const std::shared_ptr<grpc::Channel>& aggregator, const std::string& name,
                          std::chrono::seconds within);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TARGET_LOOKUP_H_
