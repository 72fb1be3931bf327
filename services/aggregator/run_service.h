// muster.v1.RunService: checks and translates requests; runs.h and authorities.h execute them.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUN_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_RUN_SERVICE_H_

#include "muster/v1/runs.grpc.pb.h"
#include "services/aggregator/addresses.h"
#include "services/aggregator/changes/change_dispatcher.h"
#include "services/aggregator/runs/authorities.h"
#include "services/aggregator/runs/listener_waits.h"
#include "services/aggregator/runs/retention.h"
#include "services/aggregator/runs/retention_rules.h"
#include "services/aggregator/runs/runs.h"
#include "services/aggregator/runs/status_listeners.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call.h"
#include "services/common/rpc/stream.h"
#include "services/common/store/state_store.h"

namespace muster {

// Thread-safe.
class RunService : public v1::RunService::CallbackService {
 public:
  RunService(const RpcRuntime& runtime, Runs& runs, Authorities& authorities,
             ListenerWaits& listener_waits, StatusListeners& status_listeners,
             ChangeDispatcher& changes, StateStore& store, const Retention& retention,
             const Clock& clock, Addresses addresses)
      : runtime_(runtime),
        runs_(runs),
        authorities_(authorities),
        listener_waits_(listener_waits),
        status_listeners_(status_listeners),
        changes_(changes),
        store_(store),
        retention_(retention),
        clock_(clock),
        addresses_(std::move(addresses)) {}

  grpc::ServerUnaryReactor* CreateRun(grpc::CallbackServerContext* context,
                                      const v1::CreateRunRequest* request,
                                      v1::Run* response) override;
  grpc::ServerUnaryReactor* GetRun(grpc::CallbackServerContext* context,
                                   const v1::GetRunRequest* request, v1::Run* response) override;
  grpc::ServerUnaryReactor* ListRuns(grpc::CallbackServerContext* context,
                                     const v1::ListRunsRequest* request,
                                     v1::ListRunsResponse* response) override;
  grpc::ServerWriteReactor<v1::Run>* WatchRun(grpc::CallbackServerContext* context,
                                              const v1::WatchRunRequest* request) override;
  grpc::ServerUnaryReactor* CancelRun(grpc::CallbackServerContext* context,
                                      const v1::CancelRunRequest* request,
                                      v1::Run* response) override;
  grpc::ServerUnaryReactor* DeleteRun(grpc::CallbackServerContext* context,
                                      const v1::DeleteRunRequest* request,
                                      v1::DeleteRunResponse* response) override;
  grpc::ServerUnaryReactor* PinRun(grpc::CallbackServerContext* context,
                                   const v1::PinRunRequest* request, v1::Run* response) override;
  grpc::ServerUnaryReactor* UnpinRun(grpc::CallbackServerContext* context,
                                     const v1::UnpinRunRequest* request,
                                     v1::Run* response) override;
  grpc::ServerUnaryReactor* PreviewRetention(grpc::CallbackServerContext* context,
                                             const v1::PreviewRetentionRequest* request,
                                             v1::PreviewRetentionResponse* response) override;
  grpc::ServerUnaryReactor* IssueCredential(grpc::CallbackServerContext* context,
                                            const v1::IssueCredentialRequest* request,
                                            v1::Credential* response) override;
  grpc::ServerUnaryReactor* IssueViewerCredential(grpc::CallbackServerContext* context,
                                                  const v1::IssueViewerCredentialRequest* request,
                                                  v1::ViewerCredential* response) override;
  grpc::ServerUnaryReactor* SetStatusListener(grpc::CallbackServerContext* context,
                                              const v1::SetStatusListenerRequest* request,
                                              v1::Run* response) override;

 private:
  absl::Status Create(const v1::CreateRunRequest& request, const Actor& created_by,
                      v1::Run* response);
  absl::Status Pin(Call& call, const std::string& run, bool pinned, v1::Run* response);
  absl::Status Preview(const v1::PreviewRetentionRequest& request,
                       v1::PreviewRetentionResponse* response);
  absl::Status SignCredential(const v1::IssueCredentialRequest& request, const RunRecord& run,
                              const Actor& asked_by, v1::Credential* response);
  absl::Status SignViewer(const v1::IssueViewerCredentialRequest& request, const RunRecord& run,
                          const Actor& asked_by, v1::ViewerCredential* response);
  absl::Status SetStatus(Call& call, const v1::SetStatusListenerRequest& request,
                         v1::Run* response);

  const RpcRuntime runtime_;
  Runs& runs_;
  Authorities& authorities_;
  ListenerWaits& listener_waits_;
  StatusListeners& status_listeners_;
  ChangeDispatcher& changes_;
  StateStore& store_;
  const Retention& retention_;
  const Clock& clock_;
  const Addresses addresses_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUN_SERVICE_H_
