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
#include "services/agent/jobs/process_mark.h"
#include "services/agent/jobs/record_outbox.h"
#include "services/common/base/file_ops.h"
#include "services/common/journal/journal.h"

namespace muster {

// NODE_FOLDER/jobs/<job>/ holds two journals:
//
//   job       the signed command: as long as it is here, it is not run again; the leader of its
//             process group, written before the program starts; that the root has all records
//   records   what happened (record_outbox.h), until the root has all of it
//
// One thread at a time; the log by itself is thread-safe.
class NodeJobFolder {
 public:
  // Durable when it returns. After a failure no job is left, as far as the disk allows.
  // ALREADY_EXISTS.
  static absl::StatusOr<std::unique_ptr<NodeJobFolder>> Create(FileOps& ops,
                                                               const std::string& jobs,
                                                               const std::string& job,
                                                               const std::string& node,
                                                               const v1::SignedCommand& command);

  // NOT_FOUND (JOB_UNFINISHED) if it holds no command: then it never began. DATA_LOSS
  // (JOURNAL_DAMAGED, JOB_DAMAGED). Damaged records are set aside.
  static absl::StatusOr<std::unique_ptr<NodeJobFolder>> Open(FileOps& ops, const std::string& jobs,
                                                             const std::string& job,
                                                             const std::string& node);

  // Null once it is done.
  RecordOutbox* log() { return log_.get(); }
  // Records were set aside when it was opened: the last of them are lost.
  bool records_damaged() const { return records_damaged_; }
  // SHA-256 of the signed bytes, and the end of the time in which it may begin.
  const std::string& command_sha256() const { return command_sha256_; }
  absl::Time not_after() const { return not_after_; }
  const std::optional<ProcessMark>& process() const { return process_; }
  bool done() const { return done_; }

  absl::Status NoteProcess(const ProcessMark& mark);
  // The root has all of it. The log is closed and removed.
  absl::Status SetDone();
  // All of it.
  absl::Status Remove();

 private:
  NodeJobFolder(FileOps& ops, std::string folder) : ops_(ops), folder_(std::move(folder)) {}
  absl::Status Fill(const std::string& jobs, const std::string& job, const std::string& node,
                    const v1::SignedCommand& command);
  absl::Status Note(char kind, std::string_view body);
  absl::Status ReadEntry(std::string_view entry);
  absl::Status ReadCommand(const v1::SignedCommand& command);
  absl::Status OpenLog(const std::string& job, const std::string& node);

  FileOps& ops_;
  const std::string folder_;
  std::string command_sha256_;
  absl::Time not_after_;
  std::optional<ProcessMark> process_;
  bool has_command_ = false;
  bool done_ = false;
  bool records_damaged_ = false;
  std::unique_ptr<Journal> journal_;  // null once it is done
  std::unique_ptr<RecordOutbox> log_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_JOB_FOLDER_H_
