// The command of a job while it runs.
#ifndef MUSTER_SERVICES_AGENT_JOBS_RUNNING_COMMAND_H_
#define MUSTER_SERVICES_AGENT_JOBS_RUNNING_COMMAND_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/base/subprocess.h"

namespace muster {

// Receives output in the order of each stream. `data` is valid during the call.
using JobOutputSink = std::function<void(v1::JobStream stream, std::string_view data)>;

// How a command ended.
struct CommandEnd {
  ExitStatus exit;
  // The kernel ended a process of it because of its memory limit; not necessarily the command.
  bool out_of_memory = false;
  // When it ran, if that is known: an end before a stop is no result of the stop.
  std::optional<absl::Time> started;
  std::optional<absl::Time> finished;
  // Why some of the output is missing; OK if none is.
  absl::Status output_lost;
  // Why a build has no image; OK for commands. Its outcome is FAILED.
  absl::Status failure;
  // The last step of a build, such as "pushed the image"; empty for commands.
  std::string doing;
  // The outputs of a build that succeeded.
  std::optional<v1::JobRecord::Outputs> outputs;
};

// A command on the node (command_process.h) or in a container (command_container.h), or the build
// of an image (build_command.h). Its output is always read, so that it never waits for the network.
// Used by one thread.
class RunningCommand {
 public:
  virtual ~RunningCommand() = default;

  // Passes output on until the descriptor `wake` is readable, `limit` has passed, or the command
  // has ended. May return earlier. Returns true once it has ended and all its output was passed.
  virtual bool Wait(int wake, absl::Duration limit) = 0;

  // Sends a signal to all of its processes.
  virtual void Signal(int signal) = 0;

  // Returns how it ended, after Wait has returned true. An error if that is not known.
  virtual absl::StatusOr<CommandEnd> Result() = 0;

  // Removes what is left of it on the node, when its end is stored. Returns whether nothing is left
  // that may still run.
  virtual bool Remove() = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_RUNNING_COMMAND_H_
