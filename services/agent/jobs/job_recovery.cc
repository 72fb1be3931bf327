#include "services/agent/jobs/job_recovery.h"

#include "absl/strings/str_cat.h"
#include "services/agent/jobs/process_mark.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"
#include "services/common/jobs/final_record.h"

namespace muster {
namespace {

v1::JobRecord RecordsDamaged() {
  return FinalRecord(v1::JOB_OUTCOME_LOST, "RECORDS_DAMAGED",
                     "its records on the node's disk are damaged, and those that follow are lost");
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeJobFolder>> RecoverJob(FileOps& ops, const std::string& jobs,
                                                          const std::string& id,
                                                          const std::string& node) {
  auto folder = NodeJobFolder::Open(ops, jobs, id, node);
  const bool unfinished = absl::IsNotFound(folder.status());
  if (!folder.ok() && !unfinished) return folder.status();
  if (!unfinished && ((*folder)->done() || (*folder)->log()->has_final())) return folder;
  if (!unfinished && (*folder)->container()) {
    if (!(*folder)->records_damaged()) return folder;
    RETURN_IF_ERROR((*folder)->log()->Append(RecordsDamaged()));
    return folder;  // the sweep removes its container
  }
  if (unfinished || !(*folder)->has_started()) {
    RETURN_IF_ERROR(RemoveTree(ops, absl::StrCat(jobs, "/", id)));
    return nullptr;
  }
  // Docker has ended a build with its connection. The sweep removes its images.
  const int ended = (*folder)->process() ? EndGroup(*(*folder)->process(),
                                                    absl::StrCat(ToAbsl(kJobVariable), "=", id))
                                         : 0;
  Log(LogLevel::kWarning, "a job of an earlier process of this agent is lost",
      {{"job", id}, {"processes_ended", ended}});
  const absl::Status died = errors::AgentDied();
  RETURN_IF_ERROR((*folder)->log()->Append(
      (*folder)->records_damaged()
          ? RecordsDamaged()
          : FinalRecord(v1::JOB_OUTCOME_LOST, ReasonOf(died), ToStd(died.message()))));
  return folder;
}

}  // namespace muster
