// muster.v1.AuditService: the audit log for operators, and records of other services.
#ifndef MUSTER_SERVICES_AGGREGATOR_AUDIT_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_AUDIT_SERVICE_H_

#include "muster/v1/audit.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call.h"
#include "services/common/store/state_store.h"

namespace muster {

// Thread-safe.
class AuditService : public v1::AuditService::CallbackService {
 public:
  AuditService(const RpcRuntime& runtime, StateStore& store, const Clock& clock)
      : runtime_(runtime), store_(store), clock_(clock) {}

  grpc::ServerUnaryReactor* ListAuditRecords(grpc::CallbackServerContext* context,
                                             const v1::ListAuditRecordsRequest* request,
                                             v1::ListAuditRecordsResponse* response) override;
  grpc::ServerUnaryReactor* RecordShareRemoval(grpc::CallbackServerContext* context,
                                               const v1::RecordShareRemovalRequest* request,
                                               v1::RecordShareRemovalResponse* response) override;
  grpc::ServerUnaryReactor* RecordJob(grpc::CallbackServerContext* context,
                                      const v1::RecordJobRequest* request,
                                      v1::RecordJobResponse* response) override;
  grpc::ServerUnaryReactor* RecordServiceChange(grpc::CallbackServerContext* context,
                                                const v1::RecordServiceChangeRequest* request,
                                                v1::RecordServiceChangeResponse* response) override;

 private:
  absl::Status List(Call& call, const v1::ListAuditRecordsRequest& request,
                    v1::ListAuditRecordsResponse* response);
  absl::Status Record(Call& call, const v1::RecordShareRemovalRequest& request);
  absl::Status Record(Call& call, const v1::RecordJobRequest& request);
  absl::Status Record(Call& call, const v1::RecordServiceChangeRequest& request);

  const RpcRuntime runtime_;
  StateStore& store_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_AUDIT_SERVICE_H_
