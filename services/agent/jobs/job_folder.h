// A job on the disk of its node.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_FOLDER_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_FOLDER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/container_mark.h"
#include "services/agent/jobs/process_mark.h"
#include "services/agent/jobs/record_outbox.h"
#include "services/agent/jobs/stop_mark.h"
#include "services/common/base/file_ops.h"
#include "services/common/journal/journal.h"

namespace muster {

// NODE_FOLDER/jobs/<job>/ contains two journals:
//
//   job       the signed command, which prevents a second run; the leader of its process group,
//             written before the program starts, or its container and why that was ended, or the
//             start of its build; the ack of all records
//   records   the records (record_outbox.h), until the root relay has all of them
//
// and the folder `state` of a deployment, while it runs (deployment_state.h).
//
// Not thread-safe; the log is.
class NodeJobFolder {
 public:
  // Creates a durable job. After a failure no job is left, as far as the disk permits.
  // ALREADY_EXISTS.
  static absl::StatusOr<std::unique_ptr<NodeJobFolder>> Create(FileOps& ops,
                                                               const std::string& jobs,
                                                               const std::string& job,
                                                               const std::string& node,
                                                               const v1::SignedCommand& command);

  // NOT_FOUND (JOB_UNFINISHED) if it has no command: then it never started. DATA_LOSS
  // (JOURNAL_DAMAGED, JOB_DAMAGED). Damaged records are moved away.
  static absl::StatusOr<std::unique_ptr<NodeJobFolder>> Open(FileOps& ops, const std::string& jobs,
                                                             const std::string& job,
                                                             const std::string& node);

  // Returns null for a job that is done.
  RecordOutbox* log() { return log_.get(); }
  // Damaged records were moved away when it was opened now or earlier, and no final record tells
  // it: the last of them are lost.
  bool records_damaged() const { return records_damaged_; }
  // The latest start.
  absl::Time not_after() const { return not_after_; }
  // The latest end: the root relay waits for the outcome until then.
  absl::Time latest_end() const { return not_after_ + time_limit_; }
  const std::optional<ProcessMark>& process() const { return process_; }
  const std::optional<ContainerMark>& container() const { return container_; }
  const std::optional<StopMark>& stop() const { return stop_; }
  // Returns whether the command may have started.
  bool has_started() const {
    return process_.has_value() || container_.has_value() || build_started_;
  }
  // Returns whether the build of its image has begun.
  bool build_started() const { return build_started_; }
  bool done() const { return done_; }
  const std::string& path() const { return folder_; }
  // Returns whether the command is that of a deployment.
  bool has_deployment() const { return has_deployment_; }
  bool has_build() const { return has_build_; }
  // Reads the deployment of the command from the disk: it is too large to be kept in memory for
  // each job. DATA_LOSS (JOURNAL_DAMAGED, JOB_DAMAGED).
  absl::StatusOr<v1::Command::Deployment> ReadDeployment() const;
  // Reads the build of the command in the same way.
  absl::StatusOr<v1::Command::Build> ReadBuild() const;

  absl::Status NoteProcess(const ProcessMark& mark);
  absl::Status NoteContainer(const ContainerMark& mark);
  absl::Status NoteStop(const StopMark& mark);
  absl::Status NoteBuild();
  // Closes and removes the log: the root relay has all records.
  absl::Status SetDone();
  // Removes the folder.
  absl::Status Remove();

 private:
  NodeJobFolder(FileOps& ops, std::string folder) : ops_(ops), folder_(std::move(folder)) {}
  absl::Status Fill(const std::string& jobs, const std::string& job, const std::string& node,
                    const v1::SignedCommand& command);
  absl::Status Note(char kind, std::string_view body);
  absl::Status ReadEntry(std::string_view entry);
  absl::Status ReadCommand(const v1::SignedCommand& command);
  absl::StatusOr<v1::Command::Container> ReadContainerOfCommand() const;
  absl::Status OpenLog(const std::string& job, const std::string& node);

  FileOps& ops_;
  const std::string folder_;
  absl::Time not_after_;
  absl::Duration time_limit_;
  std::optional<ProcessMark> process_;
  std::optional<ContainerMark> container_;
  std::optional<StopMark> stop_;
  bool has_command_ = false;
  bool has_deployment_ = false;
  bool has_build_ = false;
  bool build_started_ = false;
  bool done_ = false;
  bool records_damaged_ = false;
  std::unique_ptr<Journal> journal_;  // null once it is done
  std::unique_ptr<RecordOutbox> log_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_FOLDER_H_
