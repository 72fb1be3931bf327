// The stream of one child, a node or a relay. Small, as thousands of these are idle most of the
// time.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_ATTACH_HANDLER_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_ATTACH_HANDLER_H_

#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/rpc/call.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/jobs/record_sink.h"
#include "services/relay/topology/topology.h"

namespace muster {

// Who this relay is, as it greets.
struct RelaySelf {
  std::string uri;
  std::string key_sha256;
};

// What the streams of children work with. All of it outlives them.
struct AttachParts {
  Topology& topology;
  CommandDispatcher& dispatcher;
  RecordSink& records;
  const Clock& clock;
  absl::Duration interval;
  std::function<RelaySelf()> self;
  // Whether a statement is good now and nobody it names is revoked.
  std::function<absl::StatusOr<VerifiedStatement>(const v1::AttachStatement&)> verify;
  // Whether there is a way to the centre.
  std::function<bool()> connected;
  // Tells a child who may sign commands no more, if the list is newer than what it knows; gives the
  // version that it knows then.
  std::function<int64_t(ChildLink& child, int64_t known)> tell_signers;
  // A child has been welcomed: what else has to be told it.
  std::function<void(ChildLink& child, const v1::AttachRequest::Hello& hello)> welcomed;
  std::function<void(const std::string& child, const v1::CollectionEnded&)> collection_ended;
};

// Tells a child where it hangs; again when the way up is back.
void SendWelcome(ChildLink& child, const Topology& topology, bool connected,
                 absl::Duration interval, absl::Time now);

// Deletes itself when gRPC is done with it and nobody holds it.
class AttachHandler : public grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>,
                      public ChildLink,
                      public std::enable_shared_from_this<AttachHandler> {
 public:
  static AttachHandler* Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                              const AttachParts& parts);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // ChildLink.
  void Send(v1::AttachResponse message) override;
  void End(const absl::Status& why) override;
  void Tick() override;

 private:
  AttachHandler(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                const AttachParts& parts);

  void Greet();
  void AwaitHello();
  void Dispatch();
  void Later(std::function<absl::Status()> work);
  void ReadOn() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TakeHello() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ApplyUpdate();
  absl::Status CheckRecords() const;
  void TakeRecords();
  absl::StatusOr<TopologyEntry> EntryOf(const v1::AttachRequest::TopologyUpdate::Descendant& child,
                                        const std::vector<TopologyEntry>& so_far) const;
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(size_t queued) ABSL_LOCKS_EXCLUDED(mutex_);

  const AttachParts& parts_;
  Executor& executor_;
  grpc::CallbackServerContext* const context_;  // until OnDone
  Call call_;
  std::shared_ptr<AttachHandler> self_;  // until OnDone
  std::string name_;                     // of the child
  bool is_relay_ = false;
  std::string greeted_key_;
  std::unique_ptr<grpc::Alarm> hello_late_;  // until the hello

  // Of whoever reads; one message at a time.
  v1::AttachRequest request_;
  std::atomic<bool> attached_ = false;
  std::atomic<size_t> being_taken_ = 0;  // bytes of records
  std::atomic<int64_t> heard_at_ = 0;    // monotonic nanoseconds
  std::atomic<int64_t> said_at_ = 0;

  Mutex mutex_;
  // Its first is being written, if writing_.
  std::deque<v1::AttachResponse> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // to end with once no write is out
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_ATTACH_HANDLER_H_
