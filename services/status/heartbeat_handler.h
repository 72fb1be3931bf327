// The stream of one sender's heartbeats.
//
// A heartbeat is handled on gRPC's thread: that takes microseconds and waits for nothing. The
// object is small, because ten thousand of them are idle most of the time.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEAT_HANDLER_H_
#define MUSTER_SERVICES_STATUS_HEARTBEAT_HANDLER_H_

#include <memory>

#include "muster/v1/heartbeats.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/server_stream.h"
#include "services/status/heartbeat_intake.h"
#include "services/status/heartbeats/registry.h"

namespace muster {

// Only callbacks use the intake. Probe and End are thread-safe.
class HeartbeatHandler
    : public ServerStreamHandler<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>,
      public SenderLink,
      public std::enable_shared_from_this<HeartbeatHandler> {
 public:
  static grpc::ServerBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>* Start(
      const RpcRuntime& runtime, grpc::CallbackServerContext* context, const HeartbeatParts& parts);

  explicit HeartbeatHandler(const HeartbeatParts& parts) : parts_(parts), intake_(parts) {}

  // ServerStreamHandler.
  void OnStart(const std::shared_ptr<ServerStream<v1::StreamHeartbeatsResponse>>& stream) override;
  void OnMessage(v1::StreamHeartbeatsRequest request) override;
  void OnHalfClose() override;
  void OnWritable() override;
  void OnEnd(const absl::Status& status, EndedBy by) override;

  // SenderLink.
  void Probe() override;
  void End(const absl::Status& why) override { stream_->End(why); }

 private:
  void SendDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const HeartbeatParts& parts_;
  std::shared_ptr<ServerStream<v1::StreamHeartbeatsResponse>> stream_;
  HeartbeatIntake intake_;
  bool half_closed_ = false;

  Mutex mutex_;
  // The contents of the next message.
  Registry::Answer answer_ ABSL_GUARDED_BY(mutex_);
  bool answer_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool probe_due_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEAT_HANDLER_H_
