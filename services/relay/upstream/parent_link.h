// The upstream of a relay that is attached to a parent.
#ifndef MUSTER_SERVICES_RELAY_UPSTREAM_PARENT_LINK_H_
#define MUSTER_SERVICES_RELAY_UPSTREAM_PARENT_LINK_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "services/common/attach/attach_client.h"
#include "services/common/base/mutex.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/identity/certificate.h"
#include "services/common/jobs/transit_clock.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/record_sink.h"
#include "services/relay/trust.h"
#include "services/relay/upstream/upstream_base.h"

namespace muster {

// Attaches this relay to its parent, sends it the topology and the records of the descendants, and
// passes on what the parent sends. Stores nothing: a child that is welcomed again sends its unacked
// records again.
//
// Has no thread: the attachment runs as AttachClient describes, and a task on the executor sends
// the records that were collected. Thread-safe.
class ParentLink final : public UpstreamBase, public RecordSink, private AttachDelegate {
 public:
  using HandleShares = std::function<void(const v1::AttachResponse&)>;

  // The references outlive the link.
  struct Parts {
    Topology& topology;
    Trust& trust;
    CommandDispatcher& dispatcher;
    AttachRuntime runtime;
    Certificate command_ca;  // of the fleet
  };

  // Begins to attach. `interval`: of the heartbeats of this relay's children. `handle_shares`
  // receives the parent's messages about shared files, and must not block. `connector`: other
  // connections, for tests.
  ParentLink(AttachClientOptions options, const Parts& parts, absl::Duration interval,
             HandleShares handle_shares, std::unique_ptr<ParentConnector> connector = nullptr);
  ~ParentLink() override;

  // Upstream.
  std::shared_ptr<grpc::Channel> Results() override { return channel(); }
  std::shared_ptr<grpc::Channel> Status() override { return channel(); }
  std::shared_ptr<grpc::Channel> Joining() override { return channel(); }
  std::shared_ptr<grpc::Channel> Jobs() override { return channel(); }
  absl::Status JobsUnreachable() const override;
  bool connected() const override { return connected_; }
  std::vector<std::string> ended_runs() const ABSL_LOCKS_EXCLUDED(ended_mutex_) override;
  absl::Status MayAttach() const override;

  // RecordSink.
  void Receive(v1::JobRecords records, Done done) override;

  // Sends the topology changes and the waiting records. To be called several times a second.
  void Tick();

 private:
  // AttachDelegate.
  int64_t RevocationsVersion() override { return parts_.trust.commands_version(); }
  absl::Status OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first)
      ABSL_LOCKS_EXCLUDED(changes_mutex_) override;
  absl::Status OnMessage(v1::AttachResponse message) override;
  void OnLost(const absl::Status& why) override;
  void OnRefused(const absl::Status& why) override;
  void OnWritable() ABSL_LOCKS_EXCLUDED(records_mutex_) override;

  std::shared_ptr<grpc::Channel> channel() const { return client_.channel(); }
  void SetConnected(bool connected);
  void HandleRefusal(const absl::Status& why);
  void HandleOffer(const v1::CollectionOffer& offer) ABSL_LOCKS_EXCLUDED(ended_mutex_);
  void HandleCollectionEnded(const v1::AttachResponse& message) ABSL_LOCKS_EXCLUDED(ended_mutex_);
  void Dispatch(v1::JobCommand command) ABSL_LOCKS_EXCLUDED(transit_mutex_);
  bool SendChanges() ABSL_LOCKS_EXCLUDED(changes_mutex_);
  void SendBatch(std::vector<Done>& sent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(records_mutex_);
  void Flush() ABSL_LOCKS_EXCLUDED(records_mutex_);
  void DropRecords() ABSL_LOCKS_EXCLUDED(records_mutex_);

  const Parts parts_;
  const absl::Duration interval_;
  const HandleShares handle_shares_;
  std::atomic<bool> connected_ = false;
  std::atomic<bool> revoked_ = false;  // by the last parent that answered

  Mutex changes_mutex_;  // held while changes are dequeued and sent, so that they stay in order
  // The first welcome of the present stream was handled: before that, changes are of the last one.
  bool welcomed_ ABSL_GUARDED_BY(changes_mutex_) = false;
  bool send_all_ ABSL_GUARDED_BY(changes_mutex_) = false;
  bool complete_ ABSL_GUARDED_BY(changes_mutex_) = false;
  std::optional<v1::AttachRequest> unsent_changes_ ABSL_GUARDED_BY(changes_mutex_);

  mutable Mutex ended_mutex_;
  std::vector<std::string> ended_runs_ ABSL_GUARDED_BY(ended_mutex_);  // the last one last

  Mutex transit_mutex_;
  TransitClock transit_ ABSL_GUARDED_BY(transit_mutex_);

  Mutex records_mutex_ ABSL_ACQUIRED_BEFORE(changes_mutex_);
  // Contains at most 1 MiB of each child.
  v1::JobRecords batch_ ABSL_GUARDED_BY(records_mutex_);  // for one message
  size_t batch_bytes_ ABSL_GUARDED_BY(records_mutex_) = 0;
  std::vector<Done> batch_accepted_ ABSL_GUARDED_BY(records_mutex_);
  absl::Duration sent_at_ ABSL_GUARDED_BY(records_mutex_) = -absl::InfiniteDuration();  // monotonic
  std::deque<std::pair<v1::AttachRequest, std::vector<Done>>> waiting_
      ABSL_GUARDED_BY(records_mutex_);

  AttachClient client_;
  ScheduledTask flush_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_UPSTREAM_PARENT_LINK_H_
