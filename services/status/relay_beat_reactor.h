// The stream of a relay that brings the heartbeats of all who hang below it.
//
// A message may bring a thousand senders with a signature each to verify: it is dealt with on the
// executor, and the next one is read after it.
#ifndef MUSTER_SERVICES_STATUS_RELAY_BEAT_REACTOR_H_
#define MUSTER_SERVICES_STATUS_RELAY_BEAT_REACTOR_H_

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "muster/v1/heartbeats.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/call.h"
#include "services/status/beat_intake.h"

namespace muster {

// Deletes itself when gRPC is done with it and no sender's line is in use.
class RelayBeatReactor
    : public grpc::ServerBidiReactor<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>,
      public std::enable_shared_from_this<RelayBeatReactor> {
 public:
  static std::shared_ptr<RelayBeatReactor> Start(const RpcRuntime& runtime,
                                                 grpc::CallbackServerContext* context,
                                                 const BeatParts& parts);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Ends the stream; thread-safe.
  void End(const absl::Status& status);

 private:
  class Member;

  RelayBeatReactor(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                   const BeatParts& parts);

  absl::Status Begin();
  absl::Status OpenRelay();
  absl::Status Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void Taken(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TakeSender(v1::RelayHeartbeatsRequest::Sender& sender);
  absl::Status TakeBeat(const std::shared_ptr<Member>& member, v1::StreamHeartbeatsRequest& beat);
  void TakeHeard(int32_t id);
  void Drop(int32_t id);
  void Refuse(int32_t id, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void Probe(int32_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void Answer() ABSL_LOCKS_EXCLUDED(mutex_);
  void Send() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<grpc::Status> MarkEndedIfIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RpcRuntime runtime_;
  const BeatParts& parts_;
  Call call_;
  std::shared_ptr<RelayBeatReactor> self_;  // until OnDone
  RelaySight* relay_ = nullptr;             // from the first message on

  // Of whoever deals with a message; OnDone comes after.
  v1::RelayHeartbeatsRequest request_;
  std::unordered_map<int32_t, std::shared_ptr<Member>> members_;

  v1::RelayHeartbeatsResponse response_;
  Mutex mutex_;
  std::vector<std::pair<int32_t, absl::Status>> refused_ ABSL_GUARDED_BY(mutex_);  // to be told
  std::vector<int32_t> probes_ ABSL_GUARDED_BY(mutex_);                            // to be told
  std::vector<int32_t> gone_ ABSL_GUARDED_BY(mutex_);        // to be forgotten
  bool answering_ ABSL_GUARDED_BY(mutex_) = false;           // an answer waits to be sent
  bool taking_ ABSL_GUARDED_BY(mutex_) = false;              // a message is dealt with
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;             // a StartWrite is out
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // to end with once nothing is out
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_RELAY_BEAT_REACTOR_H_
