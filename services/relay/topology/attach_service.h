// muster.v1.AttachService: the attachments to this relay.
#ifndef MUSTER_SERVICES_RELAY_TOPOLOGY_ATTACH_SERVICE_H_
#define MUSTER_SERVICES_RELAY_TOPOLOGY_ATTACH_SERVICE_H_

#include "muster/v1/attachment.grpc.pb.h"
#include "services/common/rpc/call.h"
#include "services/relay/stream_stopper.h"
#include "services/relay/topology/attach_handler.h"

namespace muster {

// Thread-safe.
class AttachService : public v1::AttachService::CallbackService {
 public:
  AttachService(const RpcRuntime& runtime, AttachParts parts)
      : runtime_(runtime), parts_(std::move(parts)) {}

  grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* Attach(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ListAttached(grpc::CallbackServerContext* context,
                                         const v1::ListAttachedRequest* request,
                                         v1::ListAttachedResponse* response) override;

  // Ends all attachments, and rejects new ones. Called before the server stops.
  void EndStreams() { stopper_.EndAll(); }

 private:
  absl::Status List(Call& call, const v1::ListAttachedRequest& request,
                    v1::ListAttachedResponse* response) const;

  const RpcRuntime runtime_;
  const AttachParts parts_;
  StreamStopper stopper_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_TOPOLOGY_ATTACH_SERVICE_H_
