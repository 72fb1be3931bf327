// A job on the disk of its node.
#ifndef MUSTER_SERVICES_AGENT_JOBS_JOB_FOLDER_H_
#define MUSTER_SERVICES_AGENT_JOBS_JOB_FOLDER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/v1/jobs.pb.h"
#include "services/agent/jobs/process_mark.h"
#include "services/agent/jobs/record_log.h"
#include "services/common/base/file_ops.h"

namespace muster {

// NODE_FOLDER/jobs/<job>/ holds
//
//   command   the signed command: as long as it is here, it is not run again
//   process   the leader of its process group, written before the program starts
//   records   what happened (record_log.h)
//   done      the centre has all of it; records and process are gone
//
// One thread at a time; the log by itself is thread-safe.
class NodeJobFolder {
 public:
  // Durable when it returns. ALREADY_EXISTS if it is there.
  static absl::StatusOr<std::unique_ptr<NodeJobFolder>> Create(FileOps& ops,
                                                               const std::string& jobs,
                                                               const std::string& job,
                                                               const std::string& node,
                                                               const v1::SignedCommand& command);

  // INVALID_ARGUMENT (JOB_FOLDER_DAMAGED) if there is no whole command in it: then it never began.
  static absl::StatusOr<std::unique_ptr<NodeJobFolder>> Open(FileOps& ops, const std::string& jobs,
                                                             const std::string& job,
                                                             const std::string& node);

  // Null once it is done.
  NodeRecordLog* log() { return log_.get(); }
  // SHA-256 of the signed bytes, and the end of the time in which it may begin.
  const std::string& command_sha256() const { return command_sha256_; }
  absl::Time not_after() const { return not_after_; }
  const std::optional<ProcessMark>& process() const { return process_; }
  bool done() const { return done_; }

  absl::Status NoteProcess(const ProcessMark& mark);
  // The centre has all of it. The log is closed and gone.
  absl::Status SetDone();
  // All of it.
  absl::Status Remove();

 private:
  NodeJobFolder(FileOps& ops, std::string folder) : ops_(ops), folder_(std::move(folder)) {}
  absl::Status ReadCommand(const v1::SignedCommand& command);

  FileOps& ops_;
  const std::string folder_;
  std::string command_sha256_;
  absl::Time not_after_;
  std::optional<ProcessMark> process_;
  bool done_ = false;
  std::unique_ptr<NodeRecordLog> log_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_FOLDER_H_
