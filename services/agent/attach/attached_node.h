// A node attached to a relay: executes what the relay sends, and reports the records of jobs.
#ifndef MUSTER_SERVICES_AGENT_ATTACH_ATTACHED_NODE_H_
#define MUSTER_SERVICES_AGENT_ATTACH_ATTACHED_NODE_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/agent/attach/collections.h"
#include "services/agent/attach/node_folder.h"
#include "services/agent/attach/node_info.h"
#include "services/agent/attach/relay_content_source.h"
#include "services/agent/attach/relay_secrets.h"
#include "services/agent/attach/workspace_sender.h"
#include "services/agent/jobs/job_runner.h"
#include "services/common/attach/attach_client.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/timers.h"
#include "services/common/jobs/transit_clock.h"

namespace muster {

struct AttachedNodeOptions {
  NodeFolder folder;
  // key.pem, cert.pem and ca.pem of the node, replaced as a whole when it is renewed.
  std::string identity_folder;
  size_t parallel = 16;  // commands at the same time; more wait
  std::string docker_socket = "/var/run/docker.sock";
  std::string registry_credentials;  // as in JobRunnerOptions
  // As in AttachClientOptions.
  absl::Duration first_back_off = absl::Seconds(5);
  absl::Duration return_after = absl::Minutes(5);
};

// Connects the stream (common/attach) with the node's jobs and collections. A dedicated thread
// handles the messages of the relay and sends records, because both wait for the disk. While 8 MiB
// of messages are queued for it, no more are read. Thread-safe.
class AttachedNode final : private AttachDelegate {
 public:
  // Starts to attach. `collections` and the objects of `runtime` outlive the node. The errors of
  // JobRunner::Open.
  static absl::StatusOr<std::unique_ptr<AttachedNode>> Start(AttachedNodeOptions options,
                                                             Collections& collections,
                                                             const AttachRuntime& runtime);
  ~AttachedNode() override;

  bool attached() const { return client_->attached(); }

  // Starts no more commands, and ends the running ones after `grace`. Then waits, for at most
  // `report`, until the root relay has acknowledged their records; while detached it does not wait.
  // Other messages of the relay, also those that are queued, have no effect any more: it repeats
  // them when the node attaches again.
  void Stop(absl::Duration grace, absl::Duration report);

 private:
  // An event for the thread.
  struct Event {
    v1::AttachResponse message;
    size_t bytes = 0;
    bool new_stream = false;  // the message is the first welcome of a stream
    TransitClock transit;     // of the stream; for commands
  };

  explicit AttachedNode(Collections& collections) : collections_(collections) {}

  int64_t RevocationsVersion() override { return jobs_->revocations_version(); }
  absl::Status OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first) override;
  absl::Status OnMessage(v1::AttachResponse message) override;
  bool MayReadNext() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnLost(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_) override;
  void OnWritable() override { Wake(); }

  void Enqueue(Event event) ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake();
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void Handle(const Event& event) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleMessage(const v1::AttachResponse& message);
  void HandleCommand(const Event& event);
  void SendInfo() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendRecords() ABSL_LOCKS_EXCLUDED(mutex_);
  bool TrySend(const v1::AttachRequest& message) ABSL_LOCKS_EXCLUDED(mutex_);

  Collections& collections_;
  RelayContentSource contents_{[this] { return client_->channel(); }};
  std::unique_ptr<RelaySecrets> secrets_;
  std::unique_ptr<WorkspaceOutbox> workspaces_;
  std::unique_ptr<JobRunner> jobs_;  // uses the three above
  mutable Mutex mutex_;
  CondVar wake_;  // for the thread
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of events_
  bool records_ ABSL_GUARDED_BY(mutex_) = false;      // there may be new ones
  bool welcomed_ ABSL_GUARDED_BY(mutex_) = false;     // records may be sent on this stream
  bool send_info_ ABSL_GUARDED_BY(mutex_) = false;    // the parent does not have the last one
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;     // Stop was called
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;         // the thread ends
  TransitClock transit_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::AttachRequest> unsent_;  // used by the thread: the queue was full
  std::unique_ptr<AttachClient> client_;
  std::unique_ptr<WorkspaceSender> workspace_sender_;  // uses the client and the workspaces
  std::unique_ptr<NodeInfoWatch> info_;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_ATTACHED_NODE_H_
