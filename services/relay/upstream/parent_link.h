// The way of a relay that hangs below another: one connection to its parent.
#ifndef MUSTER_SERVICES_RELAY_UPSTREAM_PARENT_LINK_H_
#define MUSTER_SERVICES_RELAY_UPSTREAM_PARENT_LINK_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "services/common/attach/attach_client.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/record_sink.h"
#include "services/relay/trust.h"
#include "services/relay/upstream/upstream_base.h"

namespace muster {

// Hangs this relay below its parent, tells it what hangs here, hands on what comes down, and sends
// up what comes from below. Keeps nothing of that: who is welcomed again sends again. Thread-safe.
class ParentLink : public UpstreamBase, public RecordSink, private AttachDelegate {
 public:
  using TakeShares = std::function<void(const v1::AttachResponse&)>;

  // All outlive it. `interval`: how often this relay's own children are heard of; `shares` is
  // called with what the parent says about shared files, and must not wait.
  ParentLink(AttachClientOptions options, Topology& topology, Trust& trust,
             CommandDispatcher& dispatcher, const Clock& clock, absl::Duration interval,
             TakeShares shares);
  ~ParentLink() override;

  // Upstream.
  std::shared_ptr<grpc::Channel> Results() override { return channel(); }
  std::shared_ptr<grpc::Channel> Status() override { return channel(); }
  std::shared_ptr<grpc::Channel> Joining() override { return channel(); }
  bool connected() const override { return connected_; }

  // RecordSink.
  void Take(v1::JobRecords records, Taken taken) override;

  // From a child: what became of a collection; passed on as advice.
  void CollectionEnded(const v1::CollectionEnded& ended);

  // Tells the parent what changed below, and what waited. To be called several times a second.
  void Tick();

 private:
  // AttachDelegate.
  int64_t RevocationsVersion() override { return trust_.commands_version(); }
  absl::Status OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first)
      ABSL_LOCKS_EXCLUDED(below_mutex_) override;
  void OnMessage(v1::AttachResponse message) override;
  void OnLost(const absl::Status& why) override;
  void OnWritable() ABSL_LOCKS_EXCLUDED(records_mutex_) override;

  std::shared_ptr<grpc::Channel> channel() const;
  void SetConnected(bool connected);
  bool TellChanges() ABSL_LOCKS_EXCLUDED(below_mutex_);
  void SendGathered(std::vector<Taken>& sent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(records_mutex_);
  void Gather(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(records_mutex_);
  void Drop() ABSL_LOCKS_EXCLUDED(records_mutex_);

  Topology& topology_;
  Trust& trust_;
  CommandDispatcher& dispatcher_;
  const Clock& clock_;
  const absl::Duration interval_;
  const TakeShares take_shares_;
  std::atomic<bool> connected_ = false;

  Mutex below_mutex_;  // held while changes are taken and sent, so that they stay in order
  bool tell_all_ ABSL_GUARDED_BY(below_mutex_) = false;
  bool complete_ ABSL_GUARDED_BY(below_mutex_) = false;
  std::optional<v1::AttachRequest> unsent_below_ ABSL_GUARDED_BY(below_mutex_);

  Mutex records_mutex_ ABSL_ACQUIRED_BEFORE(below_mutex_);
  StoppableCondVar gather_;
  // Each of the children has at most 1 MiB here.
  v1::JobRecords gathered_ ABSL_GUARDED_BY(records_mutex_);  // to go together
  size_t gathered_bytes_ ABSL_GUARDED_BY(records_mutex_) = 0;
  std::vector<Taken> gathered_taken_ ABSL_GUARDED_BY(records_mutex_);
  absl::Duration sent_at_ ABSL_GUARDED_BY(records_mutex_) = -absl::InfiniteDuration();  // monotonic
  std::deque<std::pair<v1::AttachRequest, std::vector<Taken>>> waiting_
      ABSL_GUARDED_BY(records_mutex_);

  std::unique_ptr<AttachClient> client_;
  std::jthread gatherer_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_UPSTREAM_PARENT_LINK_H_
