// The attachment of one child, a node or a relay, to this relay.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_CHILD_SESSION_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_CHILD_SESSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/statement_budget.h"
#include "services/common/rpc/stream_core.h"
#include "services/relay/jobs/record_filter.h"
#include "services/relay/jobs/record_sink.h"
#include "services/relay/topology/node_info_gate.h"
#include "services/relay/topology/topology.h"
#include "services/relay/trust.h"
#include "services/relay/upstream/upstream.h"

namespace muster {

// The identity of this relay in its greetings.
struct RelaySelf {
  std::string uri;
  std::string key_sha256;
};

// The parts that all sessions share; they outlive the sessions.
struct AttachParts {
  Topology& topology;
  RecordSink& records;
  RecordFilter& record_filter;
  const Trust& trust;
  const Upstream& upstream;
  const Clock& clock;
  absl::Duration interval;
  std::function<RelaySelf()> self;
  StatementBudget& statements;
};

// Returns whether a child with this identity is a relay.
bool IsRelay(const Identity& identity);

// Tells a child its position in the topology and the state of the upstream; sent again when the
// upstream connection changes.
void SendWelcome(ChildLink& child, const TopologyView& topology, const Upstream& upstream,
                 absl::Duration interval, const Clock& clock);

// The stream of one child: gRPC's in programs, a fake in tests. Thread-safe.
class ChildStream {
 public:
  virtual ~ChildStream() = default;
  virtual void ReadNext() = 0;
  virtual Sent Send(v1::AttachResponse message) = 0;
  virtual void End(const absl::Status& why) = 0;
  virtual void Cancel(const absl::Status& why) = 0;
};

// Handle... are the callbacks of the stream, one at a time. The other methods may be called from
// any thread. One message is handled before the next is read: this is the flow control towards the
// child. Small, because thousands of sessions are idle most of the time.
class ChildSession : public ChildLink, public std::enable_shared_from_this<ChildSession> {
 public:
  // The greeting of a child waits for `executor`, which outlives the session.
  ChildSession(const AttachParts& parts, Executor& executor, Identity child,
               std::shared_ptr<ChildStream> stream);

  // Greets the child.
  void Begin();

  void HandleMessage(v1::AttachRequest message);
  // All messages to the child have been sent.
  void HandleSent() { sending_ = false; }
  // The stream is over.
  void HandleEnd() ABSL_LOCKS_EXCLUDED(mutex_);

  // ChildLink. A child that does not take its messages loses its stream.
  void Send(v1::AttachResponse message) override;
  void End(const absl::Status& why) override { stream_->End(why); }
  void Tick() override;

 private:
  void RunLater(absl::AnyInvocable<absl::Status()> work);
  absl::Status HandleHello(v1::AttachRequest::Hello hello) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasEnded() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckHello(const v1::AttachRequest::Hello& hello,
                          const VerifiedStatement& verified) const;
  // A topology update, which is handled in several turns.
  struct Update {
    v1::AttachRequest::TopologyUpdate message;
    std::vector<TopologyEntry> entries;  // of the descendants before `next`
    int next = 0;
  };
  void HandleTurn(std::shared_ptr<Update> update);
  absl::Status CheckUpdate(const v1::AttachRequest::TopologyUpdate& update) const;
  absl::Status AddDescendants(Update& update) const;
  absl::Status ApplyUpdate(Update& update);
  absl::StatusOr<VerifiedStatement> Verify(const v1::AttachStatement& statement,
                                           bool attached) const;
  absl::Status CheckRecords(const v1::JobRecords& records) const;
  void HandleRecords(v1::JobRecords records);
  absl::Status HandleInfo(v1::NodeInfo info);
  void PassInfo();
  absl::StatusOr<TopologyEntry> EntryOf(
      const v1::AttachRequest::TopologyUpdate::Descendant& descendant,
      const std::vector<TopologyEntry>& so_far) const;

  const AttachParts& parts_;
  Executor& executor_;
  const Identity child_;
  const std::string name_;  // of the child
  const bool is_relay_;
  const std::shared_ptr<ChildStream> stream_;
  NodeInfoGate info_;
  std::string greeted_key_;  // set by Begin

  std::atomic<bool> attached_ = false;
  std::atomic<bool> sending_ = false;        // a message waits to be sent
  std::atomic<size_t> pending_records_ = 0;  // bytes that the sink has not accepted yet
  std::atomic<bool> reading_ = true;      // false while records wait for the sink: no silence then
  std::atomic<int64_t> received_at_ = 0;  // monotonic nanoseconds, as the next
  std::atomic<int64_t> sent_at_ = 0;

  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_CHILD_SESSION_H_
