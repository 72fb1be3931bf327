// A command of a job in a container.
#ifndef MUSTER_SERVICES_AGENT_JOBS_COMMAND_CONTAINER_H_
#define MUSTER_SERVICES_AGENT_JOBS_COMMAND_CONTAINER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/docker/container_streams.h"
#include "services/agent/docker/docker_engine.h"
#include "services/agent/jobs/job_plan.h"
#include "services/agent/jobs/job_workspace.h"
#include "services/agent/jobs/running_command.h"

namespace muster {

// The path at which the container of a deployment has its state (deployment_state.h).
inline constexpr std::string_view kStateTarget = "/state";
// The path at which it has its files.
inline constexpr std::string_view kFilesTarget = "/files";
// The path at which it has its secrets.
inline constexpr std::string_view kSecretsTarget = "/secrets";

// The labels of the containers of jobs: the folder and the node of their agent, and the job. Agents
// in several mount namespaces may share one daemon, and have the same folder.
inline constexpr std::string_view kContainerFolderLabel = "muster.folder";
inline constexpr std::string_view kContainerNodeLabel = "muster.node";
inline constexpr std::string_view kContainerJobLabel = "muster.job";
// The id of the deployment, if it is one.
inline constexpr std::string_view kContainerDeploymentLabel = "muster.deployment";

// Returns the name of a job's container: two agents may share one daemon.
std::string ContainerNameOf(const std::string& node, const std::string& job);

// A container of the node's Docker. It runs on while the daemon or the agent is down: its output is
// then read from the daemon's log, and its end is seen later.
class CommandContainer final : public RunningCommand {
 public:
  struct Options {
    DockerEngine& engine;  // outlives it
    std::string folder;    // of the agent
    std::string node;
    std::string job;
    JobOutputSink sink;
    std::function<bool()> stopped;         // whether it must not be started any more
    std::string state;                     // the folder at kStateTarget; empty: none
    std::string files;                     // the folder at kFilesTarget; empty: none
    std::string secrets;                   // the folder at kSecretsTarget; empty: none
    std::string workspace;                 // the folder at kWorkspaceTarget; empty: none
    std::vector<std::string> environment;  // beside that of the plan; in no log
    // Receives the id of the container before it is started, and again after an adoption.
    std::function<void(const std::string& id)> identified;
    // For Adopt: an earlier process of the agent has received output of the container.
    bool has_run = false;
  };

  // Creates and starts the container, and pulls the image if the node lacks it. Calls `note`
  // immediately before the container is created; its error prevents that. If it is not known
  // whether the container was started, returns it: Wait finds out.
  static absl::StatusOr<std::unique_ptr<RunningCommand>> Start(
      const JobPlan& plan, Options options, const std::function<absl::Status()>& note);

  // Returns the container that an earlier process of the agent started. Passes its whole output,
  // from the first byte on.
  static std::unique_ptr<RunningCommand> Adopt(Options options);

  bool Wait(int wake, absl::Duration limit) override;
  void Signal(int signal) override;
  absl::StatusOr<CommandEnd> Result() override;
  bool Remove() override;

 private:
  explicit CommandContainer(Options options);
  ContainerOutputSink Sink();
  absl::Status StartNow();
  void CheckStreams();
  void ReadEnd();
  void Reopen();
  void RemoveUnstarted();
  bool HasRun() const;
  void NoteAnswer(const absl::StatusOr<ContainerState>& state);
  void Lose(absl::Duration reopen_after);
  void GiveUpOutputLater(const absl::Status& why);

  const Options options_;
  const std::string name_;
  ContainerBytes passed_;
  std::unique_ptr<ContainerStreams> streams_;  // null while the daemon does not answer
  bool complete_ = false;     // the streams began before the start, or after the end
  absl::Duration reopen_at_;  // monotonic, as the next, while there are no streams
  std::optional<absl::Duration> give_up_at_;       // one of the streams has ended first
  std::optional<absl::Duration> unstarted_since_;  // when it was found created and not started
  bool removed_unstarted_ = false;
  bool adopted_ = false;                            // and Docker has not answered since
  bool start_confirmed_ = false;                    // Docker has reported the start
  std::optional<absl::Time> unreachable_since_;     // the daemon, by the wall clock
  bool end_unseen_ = false;                         // the container ended while it was unreachable
  std::optional<absl::Duration> unreadable_since_;  // when the output of the ended one was not read
  absl::Status output_lost_;
  bool finished_ = false;
  CommandEnd end_;
  absl::Status failure_;  // why its end will never be known
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_COMMAND_CONTAINER_H_
