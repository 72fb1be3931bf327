// A command of a job as a process of the node.
#ifndef MUSTER_SERVICES_AGENT_JOBS_COMMAND_PROCESS_H_
#define MUSTER_SERVICES_AGENT_JOBS_COMMAND_PROCESS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/jobs/job_plan.h"
#include "services/agent/jobs/process_mark.h"
#include "services/agent/jobs/running_command.h"
#include "services/common/base/subprocess.h"
#include "services/common/base/unique_fd.h"

namespace muster {

// A process in its own session, with stdin from /dev/null and an environment from an allow-list.
// Signals reach its process group, whose other processes are killed when it exits.
class CommandProcess final : public RunningCommand {
 public:
  // Calls `note` before the program starts; its error prevents the start.
  static absl::StatusOr<std::unique_ptr<RunningCommand>> Start(
      const JobPlan& plan, const std::string& job, JobOutputSink sink,
      const std::function<absl::Status(const ProcessMark&)>& note);

  bool Wait(int wake, absl::Duration limit) override;
  void Signal(int signal) override { child_->Signal(signal); }
  absl::StatusOr<CommandEnd> Result() override;
  bool Remove() override { return true; }

 private:
  CommandProcess(std::unique_ptr<Subprocess> child, JobOutputSink sink);
  void Read(UniqueFd& pipe, v1::JobStream stream, size_t limit);

  const std::unique_ptr<Subprocess> child_;
  const JobOutputSink sink_;
  UniqueFd out_;
  UniqueFd err_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_COMMAND_PROCESS_H_
