// A request for a job, parsed and checked.
#ifndef MUSTER_SERVICES_RELAY_JOBS_JOB_REQUEST_H_
#define MUSTER_SERVICES_RELAY_JOBS_JOB_REQUEST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/target_set.h"

namespace muster {

// How long a job waits for unreachable nodes by default.
inline constexpr absl::Duration kDefaultWait = absl::Seconds(10);

struct JobRequest {
  v1::SubmitJobRequest message;
  v1::Command command;  // the signed one; the caller verified it
  // The nodes of a command for named nodes; null for all.
  std::shared_ptr<const TargetSet> targets;

  // How long the job waits for an unreachable node, and the time in which a node may start it.
  absl::Duration wait() const;
  absl::Duration begin_within() const;

  // Returns the command for these nodes, as it is sent downstream. Negative times count as 0.
  v1::JobCommand For(const std::vector<std::string>& nodes, absl::Duration begin_within,
                     absl::Duration wait_within) const;
};

// Parses the command and checks the rest (CheckSubmission). INVALID_ARGUMENT (INVALID_COMMAND,
// INVALID_NAME).
absl::StatusOr<JobRequest> ReadJobRequest(v1::SubmitJobRequest message);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_REQUEST_H_
