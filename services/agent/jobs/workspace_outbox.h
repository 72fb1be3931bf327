// The saved workspaces of a node, on disk until the jobs service has stored them.
#ifndef MUSTER_SERVICES_AGENT_JOBS_WORKSPACE_OUTBOX_H_
#define MUSTER_SERVICES_AGENT_JOBS_WORKSPACE_OUTBOX_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/workspaces.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/mutex.h"

namespace muster {

// The most bytes of archives that wait: with more, no deployment with a workspace starts.
inline constexpr int64_t kMaxWaitingWorkspaces = int64_t{4} << 30;
// How long an archive is kept that the jobs service refused.
inline constexpr absl::Duration kRefusedWorkspaceKept = absl::Hours(24);
// The most bytes of refused archives: with more, the oldest are removed.
inline constexpr int64_t kMaxRefusedWorkspaces = int64_t{4} << 30;

// NODE_FOLDER/workspaces/JOB/ has the files
//
//   archive   workspace_folder.h
//   report    a WorkspaceReport without signature
//
// and gets its name when both are durable. workspaces-refused/JOB/ is the same for archives that
// the jobs service has refused, or that are damaged. Thread-safe; calls block on the disk.
class WorkspaceOutbox {
 public:
  // Finds the archives of an earlier process. `ops` and `clock` outlive this.
  static absl::StatusOr<std::unique_ptr<WorkspaceOutbox>> Open(FileOps& ops,
                                                               const std::string& node_folder,
                                                               std::string node,
                                                               const Clock& clock);

  // UNAVAILABLE (WORKSPACE_UNAVAILABLE) if too many bytes wait.
  absl::Status CheckRoom() ABSL_LOCKS_EXCLUDED(mutex_);

  // Packs the folder of an ended container, and returns the record. If an earlier call, also one of
  // an earlier process, has saved it, returns the same record. Durable afterwards. Only one call
  // for a job at a time. `stopped` and the errors: as those of PackWorkspace.
  absl::StatusOr<v1::JobRecord::Workspace> Save(const std::string& job,
                                                const v1::Command::WorkspaceReference& named,
                                                const std::string& folder,
                                                const std::function<bool()>& stopped)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the jobs whose archives wait.
  std::vector<std::string> Waiting() ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits until one waits, for at most `limit`, or Wake. Returns whether one does.
  bool AwaitWaiting(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the report of a job that waits, without signature. INTERNAL (WORKSPACE_NOT_SAVED) if it
  // is damaged, or the archive has another size: then the archive can never be sent.
  absl::StatusOr<v1::WorkspaceReport> Report(const std::string& job);
  // Returns the part of its archive at this offset, a multiple of kWorkspacePart.
  absl::StatusOr<std::string> ReadPart(const std::string& job, int64_t offset);

  // Removes the archive of a job: the jobs service has stored it.
  absl::Status Remove(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps it for a day, and does not return it any more: the jobs service has refused it, or it is
  // damaged. Removes earlier ones as ForgetRefused does.
  absl::Status Refuse(const std::string& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes refused archives that were kept long enough, and the oldest if all have too many bytes.
  void ForgetRefused();

 private:
  WorkspaceOutbox(FileOps& ops, const std::string& node_folder, std::string node,
                  const Clock& clock);

  struct Refused {
    int64_t at = 0;  // microseconds since the epoch
    std::string path;
    int64_t bytes = 0;
  };

  std::string PathOf(const std::string& job) const;
  absl::Status Recover();
  // Returns the refused archives, the newest first.
  std::vector<Refused> ListRefused();
  absl::Status Pack(const std::string& job, const v1::Command::WorkspaceReference& named,
                    const std::string& folder, const std::function<bool()>& stopped);

  FileOps& ops_;
  const std::string folder_;
  const std::string refused_;
  const std::string node_;
  const Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, int64_t> waiting_ ABSL_GUARDED_BY(mutex_);  // bytes, by job
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_WORKSPACE_OUTBOX_H_
