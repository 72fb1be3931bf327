// muster.v1.HeartbeatService at a relay: the heartbeats of all senders are forwarded by one stream.
#ifndef MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_FORWARD_H_
#define MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_FORWARD_H_

#include <memory>

#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/relay/proxy/heartbeats/heartbeat_hub.h"
#include "services/relay/proxy/upstream_call.h"
#include "services/relay/proxy/upstream_stream.h"
#include "services/relay/stream_stopper.h"

namespace muster {

// RelayHeartbeats is forwarded without parsing its messages.
using HeartbeatServiceBase = v1::HeartbeatService::WithCallbackMethod_StreamHeartbeats<
    v1::HeartbeatService::WithCallbackMethod_SendHeartbeat<
        v1::HeartbeatService::WithRawCallbackMethod_RelayHeartbeats<
            v1::HeartbeatService::Service>>>;

// Thread-safe.
class HeartbeatForward : public HeartbeatServiceBase {
 public:
  // Adds every stream to `stopper`.
  HeartbeatForward(const ForwardParts& parts, HeartbeatHub& hub, ReadAheadBudget& ahead,
                   const Clock& clock, StreamStopper& stopper)
      : parts_(parts), hub_(hub), ahead_(ahead), clock_(clock), stopper_(stopper) {}

  grpc::ServerBidiReactor<v1::StreamHeartbeatsRequest, v1::StreamHeartbeatsResponse>*
  StreamHeartbeats(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* SendHeartbeat(grpc::CallbackServerContext* context,
                                          const v1::SendHeartbeatRequest* request,
                                          v1::SendHeartbeatResponse* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* RelayHeartbeats(
      grpc::CallbackServerContext* context) override;

 private:
  const ForwardParts parts_;
  HeartbeatHub& hub_;
  ReadAheadBudget& ahead_;
  const Clock& clock_;
  StreamStopper& stopper_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_HEARTBEATS_HEARTBEAT_FORWARD_H_
