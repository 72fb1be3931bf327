// What was asked for with a job, read and checked.
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

// How long nodes that are away are waited for if nobody says.
inline constexpr absl::Duration kDefaultWait = absl::Seconds(10);

// A job's request with what follows from it.
struct JobRequest {
  v1::SubmitJobRequest message;
  v1::Command command;  // what is signed in it; checked before
  // Of a command for named nodes; null for all.
  std::shared_ptr<const TargetSet> targets;

  // How long a node that is away is waited for, and within what time a node may begin.
  absl::Duration wait() const;
  absl::Duration begin_within() const;

  // The command for these nodes, as it goes down the tree.
  v1::JobCommand For(const std::vector<std::string>& nodes, absl::Duration begin_within) const;
};

// INVALID_COMMAND if the nodes are not those that were signed, or too many.
absl::StatusOr<JobRequest> ReadJobRequest(v1::SubmitJobRequest message);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_JOB_REQUEST_H_
