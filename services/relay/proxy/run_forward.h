// muster.v1.RunService at a relay: the methods by which a node sees its runs.
#ifndef MUSTER_SERVICES_RELAY_PROXY_RUN_FORWARD_H_
#define MUSTER_SERVICES_RELAY_PROXY_RUN_FORWARD_H_

#include "muster/v1/runs.grpc.pb.h"
#include "services/relay/proxy/upstream_call.h"

namespace muster {

// Thread-safe.
class RunForward : public v1::RunService::CallbackService {
 public:
  explicit RunForward(const ForwardParts& parts) : parts_(parts) {}

  grpc::ServerUnaryReactor* GetRun(grpc::CallbackServerContext* context,
                                   const v1::GetRunRequest* request, v1::Run* response) override;
  grpc::ServerWriteReactor<v1::Run>* WatchRun(grpc::CallbackServerContext* context,
                                              const v1::WatchRunRequest* request) override;

  // RELAY_DOES_NOT_SERVE.
  grpc::ServerUnaryReactor* CreateRun(grpc::CallbackServerContext* context,
                                      const v1::CreateRunRequest*, v1::Run*) override;
  grpc::ServerUnaryReactor* ListRuns(grpc::CallbackServerContext* context,
                                     const v1::ListRunsRequest*, v1::ListRunsResponse*) override;
  grpc::ServerUnaryReactor* CancelRun(grpc::CallbackServerContext* context,
                                      const v1::CancelRunRequest*, v1::Run*) override;
  grpc::ServerUnaryReactor* DeleteRun(grpc::CallbackServerContext* context,
                                      const v1::DeleteRunRequest*, v1::DeleteRunResponse*) override;
  grpc::ServerUnaryReactor* PinRun(grpc::CallbackServerContext* context, const v1::PinRunRequest*,
                                   v1::Run*) override;
  grpc::ServerUnaryReactor* UnpinRun(grpc::CallbackServerContext* context,
                                     const v1::UnpinRunRequest*, v1::Run*) override;
  grpc::ServerUnaryReactor* PreviewRetention(grpc::CallbackServerContext* context,
                                             const v1::PreviewRetentionRequest*,
                                             v1::PreviewRetentionResponse*) override;
  grpc::ServerUnaryReactor* IssueCredential(grpc::CallbackServerContext* context,
                                            const v1::IssueCredentialRequest*,
                                            v1::Credential*) override;
  grpc::ServerUnaryReactor* IssueViewerCredential(grpc::CallbackServerContext* context,
                                                  const v1::IssueViewerCredentialRequest*,
                                                  v1::ViewerCredential*) override;
  grpc::ServerUnaryReactor* SetStatusListener(grpc::CallbackServerContext* context,
                                              const v1::SetStatusListenerRequest*,
                                              v1::Run*) override;

 private:
  const ForwardParts parts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_RUN_FORWARD_H_
