// The RPCs of conformance: checks and translates.
#ifndef MUSTER_SERVICES_JOBS_CONFORMANCE_SERVICE_H_
#define MUSTER_SERVICES_JOBS_CONFORMANCE_SERVICE_H_

#include "muster/v1/conformance.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/disk_reserve.h"
#include "services/common/rpc/call.h"
#include "services/jobs/conformance_store.h"

namespace muster {

// Thread-safe. The arguments outlive it.
class ConformanceService final : public v1::ConformanceService::CallbackService {
 public:
  // `reserve`: of the disk with the store.
  ConformanceService(const RpcRuntime& runtime, ConformanceStore& store, DiskReserve& reserve,
                     const Clock& clock)
      : runtime_(runtime), store_(store), reserve_(reserve), clock_(clock) {}

  grpc::ServerUnaryReactor* ListConformance(grpc::CallbackServerContext* context,
                                            const v1::ListConformanceRequest* request,
                                            v1::ListConformanceResponse* response) override;
  grpc::ServerUnaryReactor* GetConformance(grpc::CallbackServerContext* context,
                                           const v1::GetConformanceRequest* request,
                                           v1::NodeConformance* response) override;
  grpc::ServerUnaryReactor* GetBaseline(grpc::CallbackServerContext* context,
                                        const v1::GetBaselineRequest* request,
                                        v1::ConformanceBaseline* response) override;
  grpc::ServerUnaryReactor* SetBaseline(grpc::CallbackServerContext* context,
                                        const v1::SetBaselineRequest* request,
                                        v1::ConformanceBaseline* response) override;
  grpc::ServerUnaryReactor* RemoveBaseline(grpc::CallbackServerContext* context,
                                           const v1::RemoveBaselineRequest* request,
                                           v1::ConformanceBaseline* response) override;

 private:
  absl::Status List(Call& call, const v1::ListConformanceRequest& request,
                    v1::ListConformanceResponse* response);
  absl::Status Set(Call& call, const v1::SetBaselineRequest& request,
                   v1::ConformanceBaseline* response);

  const RpcRuntime runtime_;
  ConformanceStore& store_;
  DiskReserve& reserve_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_CONFORMANCE_SERVICE_H_
