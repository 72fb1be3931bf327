// muster.v1.ListenerService: certificates, keys and reports for the listeners that the gateway
// opens for runs.
#ifndef MUSTER_SERVICES_AGGREGATOR_LISTENER_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_LISTENER_SERVICE_H_

#include "muster/v1/listeners.grpc.pb.h"
#include "services/aggregator/runs/authorities.h"
#include "services/aggregator/runs/runs.h"
#include "services/aggregator/runs/status_listeners.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call.h"
#include "services/common/store/state_store.h"

namespace muster {

// Thread-safe.
class ListenerService : public v1::ListenerService::CallbackService {
 public:
  ListenerService(const RpcRuntime& runtime, Runs& runs, Authorities& authorities,
                  StatusListeners& status_listeners, StateStore& store, const Clock& clock)
      : runtime_(runtime),
        runs_(runs),
        authorities_(authorities),
        status_listeners_(status_listeners),
        store_(store),
        clock_(clock) {}

  grpc::ServerUnaryReactor* SignListenerCertificate(
      grpc::CallbackServerContext* context, const v1::SignListenerCertificateRequest* request,
      v1::SignListenerCertificateResponse* response) override;
  grpc::ServerUnaryReactor* ReportListener(grpc::CallbackServerContext* context,
                                           const v1::ReportListenerRequest* request,
                                           v1::Run* response) override;
  grpc::ServerUnaryReactor* ReleaseListener(grpc::CallbackServerContext* context,
                                            const v1::ReleaseListenerRequest* request,
                                            v1::ReleaseListenerResponse* response) override;
  grpc::ServerUnaryReactor* GetStatusListener(grpc::CallbackServerContext* context,
                                              const v1::GetStatusListenerRequest* request,
                                              v1::GetStatusListenerResponse* response) override;
  grpc::ServerUnaryReactor* ReportStatusListener(grpc::CallbackServerContext* context,
                                                 const v1::ReportStatusListenerRequest* request,
                                                 v1::Run* response) override;

 private:
  absl::Status Sign(Call& call, const v1::SignListenerCertificateRequest& request,
                    v1::SignListenerCertificateResponse* response);
  absl::Status Report(Call& call, const v1::ReportListenerRequest& request, v1::Run* response);
  absl::Status Release(Call& call, const v1::ReleaseListenerRequest& request);
  absl::Status GetStatus(Call& call, const v1::GetStatusListenerRequest& request,
                         v1::GetStatusListenerResponse* response);
  absl::Status ReportStatus(Call& call, const v1::ReportStatusListenerRequest& request,
                            v1::Run* response);

  const RpcRuntime runtime_;
  Runs& runs_;
  Authorities& authorities_;
  StatusListeners& status_listeners_;
  StateStore& store_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_LISTENER_SERVICE_H_
