// A node that hangs in the tree: what comes down is done, what is to be told goes up.
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
#include "services/agent/jobs/job_runner.h"
#include "services/common/attach/attach_client.h"
#include "services/common/base/mutex.h"
#include "services/common/jobs/transit_clock.h"

namespace muster {

struct AttachedNodeOptions {
  NodeFolder folder;
  // key.pem, cert.pem and ca.pem of the node, replaced as a whole when it is renewed.
  std::string identity_folder;
  size_t parallel = 16;  // commands at a time; more wait
  // As AttachClientOptions has them.
  absl::Duration first_back_off = absl::Seconds(5);
  absl::Duration return_after = absl::Minutes(5);
};

// Between the stream (common/attach) and the node's jobs and collections. What arrives is dealt
// with on a thread of its own, as it may block on the disk; when more than 8 MiB wait for that, no
// more is read. Thread-safe.
class AttachedNode final : private AttachDelegate {
 public:
  // Begins to attach. `collections` outlives it. The errors of JobRunner::Open.
  static absl::StatusOr<std::unique_ptr<AttachedNode>> Start(AttachedNodeOptions options,
                                                             Collections& collections);
  ~AttachedNode() override;

  bool attached() const { return client_->attached(); }

  // No command begins any more; those that run get `grace`, then are ended. Returns when the centre
  // has what became of them, at most `tell` after that; at once if it cannot be told.
  void Stop(absl::Duration grace, absl::Duration tell);

 private:
  // What the thread deals with, in order.
  struct Event {
    bool welcome = false;  // else a message
    v1::AttachResponse message;
    size_t bytes = 0;
  };

  explicit AttachedNode(Collections& collections) : collections_(collections) {}

  int64_t RevocationsVersion() override { return jobs_->revocations_version(); }
  absl::Status OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first) override;
  void OnMessage(v1::AttachResponse message) override;
  void OnLost(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_) override;
  void OnWritable() override { Wake(); }

  void Enqueue(Event event) ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake();
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  void Handle(const Event& event) ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleMessage(const v1::AttachResponse& message);
  void HandleCommand(v1::JobCommand command) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendRecords() ABSL_LOCKS_EXCLUDED(mutex_);
  bool TrySend(const v1::AttachRequest& message) ABSL_LOCKS_EXCLUDED(mutex_);

  Collections& collections_;
  std::unique_ptr<JobRunner> jobs_;
  mutable Mutex mutex_;
  CondVar wake_;  // of the thread
  CondVar room_;  // less waits
  CondVar told_;  // records were acknowledged
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of events_
  bool records_ ABSL_GUARDED_BY(mutex_) = false;      // there may be some
  bool welcomed_ ABSL_GUARDED_BY(mutex_) = false;     // records may go up on this stream
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  TransitClock transit_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::AttachRequest> unsent_;  // of the thread: there was no room for it
  std::unique_ptr<AttachClient> client_;
  std::thread thread_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_ATTACH_ATTACHED_NODE_H_
