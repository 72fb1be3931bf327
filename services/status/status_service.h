// muster.v1.StatusService.
#ifndef MUSTER_SERVICES_STATUS_STATUS_SERVICE_H_
#define MUSTER_SERVICES_STATUS_STATUS_SERVICE_H_

#include "muster/v1/status.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call.h"
#include "services/status/board.h"

namespace muster {

// Thread-safe.
class StatusService : public v1::StatusService::CallbackService {
 public:
  StatusService(const RpcRuntime& runtime, Board& board, const Clock& clock)
      : runtime_(runtime), board_(board), clock_(clock) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::RunStatus* response) override;
  grpc::ServerUnaryReactor* ReportProgress(grpc::CallbackServerContext* context,
                                           const v1::ReportProgressRequest* request,
                                           v1::ReportProgressResponse* response) override;

 private:
  const RpcRuntime runtime_;
  Board& board_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_STATUS_SERVICE_H_
