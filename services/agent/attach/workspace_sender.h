// Sends the saved workspaces of a node to the jobs service, through the relay.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_WORKSPACE_SENDER_H_
#define MUSTER_SERVICES_AGENT_ATTACH_WORKSPACE_SENDER_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/workspaces.pb.h"
#include "services/agent/jobs/workspace_outbox.h"
#include "services/common/base/backoff.h"
#include "services/common/identity/certificate.h"
#include "services/common/jobs/signing_files.h"
#include "services/common/rpc/service_channel.h"

namespace muster {

// A thread sends one archive at a time, in parts, and each until the jobs service has signed that
// it is stored or refused: a relay can delay a workspace, and neither change nor lose it. An
// archive that is damaged on this node is kept with the refused ones. Thread-safe.
class WorkspaceSender {
 public:
  struct Options {
    std::string fleet;
    std::string identity_folder;  // as in AttachedNodeOptions
    GetChannel channel;           // to the relay; returns null while there is none
    BackoffOptions backoff = {absl::Seconds(1), absl::Minutes(5)};
  };

  // `outbox` outlives the sender.
  WorkspaceSender(WorkspaceOutbox& outbox, Options options);
  // Stops, and waits for the thread.
  ~WorkspaceSender();

 private:
  // The next attempt for an archive.
  struct Attempt {
    explicit Attempt(const BackoffOptions& options) : backoff(options) {}

    Backoff backoff;
    absl::Duration at;  // monotonic
  };

  void Work();
  // Sends the archives that are due. Returns the time of the next attempt.
  absl::Duration SendDue();
  void HandleFailure(const std::string& job, const absl::Status& why);
  absl::Status Send(const std::string& job);
  absl::Status HandleUnreadable(const std::string& job, const absl::Status& why);
  absl::StatusOr<v1::SaveWorkspaceResponse> Call(const v1::SaveWorkspaceRequest& request);
  absl::Status HandleAnswer(const std::string& job, const v1::WorkspaceReport& report,
                            const v1::SaveWorkspaceResponse& answer);

  WorkspaceOutbox& outbox_;
  const Options options_;
  std::atomic<bool> stopped_ = false;
  std::map<std::string, Attempt> attempts_;  // used by the thread; by job
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_WORKSPACE_SENDER_H_
