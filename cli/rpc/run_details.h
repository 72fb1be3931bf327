// The details of a stored run that its status does not have. Only operators may read them.
#ifndef MUSTER_CLI_RPC_RUN_DETAILS_H_
#define MUSTER_CLI_RPC_RUN_DETAILS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/rpc/client.h"
#include "muster/v1/runs.pb.h"
#include "muster/v1/verification.pb.h"

namespace muster::cli {

struct RunDetails {
  bool pinned = false;
  std::vector<v1::DamagedResult> damaged;  // the archive is last, without plugin and node
};

// Returns the damaged results and the damaged archive of a run. Lists its results only if the run
// has damage.
absl::StatusOr<std::vector<v1::DamagedResult>> FindDamage(Client& client, const v1::Run& run);

// Returns the details of a run with the operator context that --context, the environment or the
// home names. Returns no details without a context, if the aggregator does not answer a first call
// within two seconds, or if it does not know the run.
RunDetails FetchRunDetails(const std::string& context_option, const std::string& run);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_RUN_DETAILS_H_
