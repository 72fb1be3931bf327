// The build of an image, from the pull of its base to its push.
#ifndef MUSTER_SERVICES_AGENT_JOBS_BUILD_COMMAND_H_
#define MUSTER_SERVICES_AGENT_JOBS_BUILD_COMMAND_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/docker/docker_engine.h"
#include "services/agent/docker/image_builder.h"
#include "services/agent/jobs/job_plan.h"
#include "services/agent/jobs/running_command.h"
#include "services/common/base/mutex.h"
#include "services/common/base/unique_fd.h"

namespace muster {

// Returns what names the agent of a folder and a node in the label kBuilderLabel: a digest, because
// the image is pushed.
std::string BuilderOf(const std::string& folder, const std::string& node);

// Runs in its own thread, which blocks on the daemon. A signal, and the destructor, stop a pull, a
// build and a push within a second. The images of the build are removed from the node at its end:
// it is pushed, or it failed. That, and each other question to the daemon, is a call that is not
// stopped, and has 30 s: a daemon that does not answer delays the end, and the destructor, by some
// of these.
class BuildCommand final : public RunningCommand {
 public:
  struct Options {
    DockerEngine& engine;  // outlives it
    std::string builder;   // BuilderOf
    std::string job;
    std::string files;  // the folder with the stored files of the build
    JobOutputSink sink;
  };

  // Starts the build of a checked content (build_content.h). INVALID_ARGUMENT (INVALID_DOCUMENT) if
  // this version of the program does not accept its documents.
  static absl::StatusOr<std::unique_ptr<RunningCommand>> Start(const JobPlan& plan,
                                                               v1::Command::Build build,
                                                               Options options);
  ~BuildCommand() override;

  bool Wait(int wake, absl::Duration limit) override;
  void Signal(int signal) override { stopped_ = true; }
  absl::StatusOr<CommandEnd> Result() override;
  bool Remove() override { return true; }

 private:
  BuildCommand(const JobPlan& plan, v1::Command::Build build, ImageRecipe recipe, Options options);
  void Run();
  absl::StatusOr<std::string> BuildAndPush();
  void Begin(std::string_view doing, std::string_view object);
  void Print(std::string_view text) ABSL_LOCKS_EXCLUDED(mutex_);
  void PassOutput() ABSL_LOCKS_EXCLUDED(mutex_);

  const JobPlan plan_;
  const std::string repository_;
  const BuildFiles files_;
  const ImageRecipe recipe_;
  const Options options_;
  const UniqueFd news_;  // there is output, or the end
  std::atomic<bool> stopped_ = false;
  Mutex mutex_;
  CondVar passed_;  // output_ was taken
  std::string output_ ABSL_GUARDED_BY(mutex_);
  std::string doing_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  CommandEnd end_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_BUILD_COMMAND_H_
