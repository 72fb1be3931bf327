// Attach streams of gRPC.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_ATTACH_HANDLER_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_ATTACH_HANDLER_H_

#include <memory>
#include <utility>

#include "muster/v1/attachment.pb.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/server_stream.h"
#include "services/relay/stream_stopper.h"
#include "services/relay/topology/child_session.h"

namespace muster {

// Connects one stream with a session.
class AttachHandler : public ServerStreamHandler<v1::AttachRequest, v1::AttachResponse> {
 public:
  static grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* Start(
      const RpcRuntime& runtime, grpc::CallbackServerContext* context, const AttachParts& parts,
      StreamStopper& stopper);

  AttachHandler(const AttachParts& parts, Executor& executor, StreamStopper& stopper)
      : parts_(parts), executor_(executor), stopper_(stopper) {}

  void OnStart(const std::shared_ptr<ServerStream<v1::AttachResponse>>& stream) override;
  void OnMessage(v1::AttachRequest message) override {
    session_->HandleMessage(std::move(message));
  }
  void OnHalfClose() override { stream_->End(errors::NoReadableMessage()); }
  void OnWritable() override { session_->HandleSent(); }
  void OnEnd(const absl::Status& status, EndedBy by) override;

 private:
  const AttachParts& parts_;
  Executor& executor_;
  StreamStopper& stopper_;
  StreamStopper::Ticket ticket_;  // of stopper_, until the end
  std::shared_ptr<ServerStream<v1::AttachResponse>> stream_;
  std::shared_ptr<ChildSession> session_;  // null if the caller may not attach
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_ATTACH_HANDLER_H_
