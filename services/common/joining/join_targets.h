// Sends one request to the join targets of a fleet in turn.
#ifndef MUSTER_SERVICES_COMMON_JOINING_JOIN_TARGETS_H_
#define MUSTER_SERVICES_COMMON_JOINING_JOIN_TARGETS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/join.pb.h"

namespace muster {

// Returns true for an answer that the same request would get again from this target.
bool IsJoinRefusal(const absl::Status& status);

// Calls `ask` with each target until one succeeds. `ask` fails for an answer that cannot be used,
// which a faulty or hostile relay may give. A refusal does not end this, because it may concern
// only the relay that forwards the request, for example a revoked one. Returns a refusal only if
// every target that answered refused; the last one, because the fleet's own addresses come last.
// Tunnels come after the other targets; unless all are tunnels, one is asked only if a proxy may
// have prevented an earlier connection (AllowsTunnel), and the log reports it.
// `targets` must not be empty.
absl::StatusOr<v1::NodeCertificate> AskJoinTargets(
    const std::vector<std::string>& targets,
    absl::FunctionRef<absl::StatusOr<v1::NodeCertificate>(const std::string& target)> ask);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOINING_JOIN_TARGETS_H_
