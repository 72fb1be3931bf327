// muster.v1.StatusService at a relay: it forwards progress and serves nothing else.
#ifndef MUSTER_SERVICES_RELAY_PROXY_STATUS_FORWARD_H_
#define MUSTER_SERVICES_RELAY_PROXY_STATUS_FORWARD_H_

#include "muster/v1/status.grpc.pb.h"
#include "services/relay/proxy/upstream_call.h"

namespace muster {

// Thread-safe.
class StatusForward : public v1::StatusService::CallbackService {
 public:
  explicit StatusForward(const ForwardParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* ReportProgress(grpc::CallbackServerContext* context,
                                           const v1::ReportProgressRequest* request,
                                           v1::ReportProgressResponse* response) override {
    const v1::ResultKey& key = request->key();
    return ForwardUnary(parts_, &Upstream::Status, context,
                        "/muster.v1.StatusService/ReportProgress",
                        Resource::Pair(key.run(), key.plugin(), key.node()), request, response);
  }

  // RELAY_DOES_NOT_SERVE.
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest*, v1::RunStatus*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.StatusService/GetStatus");
  }
  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* context,
                                      const v1::ListNodesRequest*,
                                      v1::ListNodesResponse*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.StatusService/ListNodes");
  }
  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext* context, const v1::GetNodeRequest*,
                                    v1::Node*) override {
    return RejectUnary(parts_.runtime, context, "/muster.v1.StatusService/GetNode");
  }
  grpc::ServerWriteReactor<v1::WatchStatusResponse>* WatchStatus(
      grpc::CallbackServerContext* context, const v1::WatchStatusRequest*) override {
    return RejectStream<v1::WatchStatusResponse>(parts_.runtime, context,
                                                 "/muster.v1.StatusService/WatchStatus");
  }

 private:
  const ForwardParts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_STATUS_FORWARD_H_
