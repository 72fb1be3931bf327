// The nodes that the probes of conformance have to run on again.
#ifndef MUSTER_CLI_COMMANDS_CONFORMANCE_DUE_H_
#define MUSTER_CLI_COMMANDS_CONFORMANCE_DUE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/rpc/attached.h"
#include "muster/v1/conformance.pb.h"

namespace muster::cli {

// Reports are renewed after this time, and after half of the time for which a baseline admits them.
inline constexpr absl::Duration kReportRenewal = absl::Hours(24 * 7);

// Returns the attached nodes with a Docker that answers whose report is missing, older than `age`,
// or from before Docker had its version. Sorted. A clock of a node that is ahead delays the last.
std::vector<std::string> DueNodes(const AttachedMap& attached,
                                  const std::vector<v1::NodeConformance>& reports,
                                  absl::Duration age, absl::Time now);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_CONFORMANCE_DUE_H_
