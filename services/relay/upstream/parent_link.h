// The way of a relay that hangs below another: one connection to its parent.
#ifndef MUSTER_SERVICES_RELAY_UPSTREAM_PARENT_LINK_H_
#define MUSTER_SERVICES_RELAY_UPSTREAM_PARENT_LINK_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "services/common/attach/attach_client.h"
#include "services/common/base/clock.h"
#include "services/relay/jobs/courier.h"
#include "services/relay/jobs/record_sink.h"
#include "services/relay/trust.h"
#include "services/relay/upstream/tree_way.h"

namespace muster {

// Hangs this relay below its parent, tells it what hangs here, hands on what comes down, and sends
// up what comes from below. Keeps nothing of that: who is welcomed again sends again. Thread-safe.
class ParentLink : public TreeWay, public RecordSink, private AttachDelegate {
 public:
  using TakeShares = std::function<void(const v1::AttachResponse&)>;

  // All outlive it. `interval`: how often this relay's own children are heard of; `shares` is
  // called with what the parent says about shared files, and must not wait.
  ParentLink(AttachClientOptions options, Tree& tree, Trust& trust, Courier& courier,
             const Clock& clock, absl::Duration interval, TakeShares shares);
  ~ParentLink() override;

  // WayUp.
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
  absl::Status OnWelcome(const v1::AttachResponse::Welcome& welcome, bool first) override;
  void OnMessage(v1::AttachResponse message) override;
  void OnLost(const absl::Status& why) override;
  void OnWritable() override;

  std::shared_ptr<grpc::Channel> channel() const;
  void SetConnected(bool connected);
  bool TellChanges();
  void SendGathered(std::vector<Taken>& sent);
  void Gather(const std::stop_token& stop);
  void Drop();

  Tree& tree_;
  Trust& trust_;
  Courier& courier_;
  const Clock& clock_;
  const absl::Duration interval_;
  const TakeShares take_shares_;
  std::atomic<bool> connected_ = false;

  std::mutex below_mutex_;  // held while changes are taken and sent, so that they stay in order
  bool tell_all_ = false;   // guarded by below_mutex_, as the next two
  bool complete_ = false;
  std::optional<v1::AttachRequest> unsent_below_;

  std::mutex records_mutex_;
  std::condition_variable_any gather_;
  // All below are guarded by records_mutex_. Each of the children has at most 1 MiB here.
  v1::JobRecords gathered_;  // to go together
  size_t gathered_bytes_ = 0;
  std::vector<Taken> gathered_taken_;
  absl::Duration sent_at_ = -absl::InfiniteDuration();  // monotonic
  std::deque<std::pair<v1::AttachRequest, std::vector<Taken>>> waiting_;

  std::unique_ptr<AttachClient> client_;
  std::jthread gatherer_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_UPSTREAM_PARENT_LINK_H_
