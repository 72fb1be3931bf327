// Recovery of jobs after a restart of the agent.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_RECOVERY_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_RECOVERY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/agent/jobs/job_folder.h"
#include "services/common/base/file_ops.h"

namespace muster {

// Opens the folder of a job. A job whose container may still run, or exists, is returned as it is:
// JobProcess follows it. Another job that started and has no final record, or whose records are
// damaged before it, is LOST: the rest of its process group is killed. A job that never started is
// removed, and the result is null: the parent sends it again. The errors of NodeJobFolder::Open,
// and those of the disk: then a later call may succeed.
absl::StatusOr<std::unique_ptr<NodeJobFolder>> RecoverJob(FileOps& ops, const std::string& jobs,
                                                          const std::string& id,
                                                          const std::string& node);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_RECOVERY_H_
