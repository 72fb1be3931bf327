// muster.v1.StatusService.
#ifndef MUSTER_SERVICES_STATUS_STATUS_SERVICE_H_
#define MUSTER_SERVICES_STATUS_STATUS_SERVICE_H_

#include <functional>
#include <string>
#include <vector>

#include "muster/v1/status.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/rpc/call.h"
#include "services/status/board/board.h"

namespace muster {

// GetStatus and WatchStatus answer with bytes (board/pair_writer.h). Progress is parsed here and
// not by gRPC, which answers bytes that are no message with UNIMPLEMENTED: it comes from plugins,
// and their authors have to learn what is wrong.
using RawStatusMethods = v1::StatusService::WithRawCallbackMethod_GetStatus<
    v1::StatusService::WithRawCallbackMethod_WatchStatus<
        v1::StatusService::WithRawCallbackMethod_ReportProgress<
            v1::StatusService::CallbackService>>>;

// Thread-safe.
class StatusService : public RawStatusMethods {
 public:
  // The newest events of a node, the newest first; may wait for the disk.
  using History =
      std::function<absl::StatusOr<std::vector<v1::NodeEvent>>(const std::string& node)>;

  // `watching` is what streams run on, so that a thousand watchers do not keep others waiting.
  StatusService(const RpcRuntime& runtime, const RpcRuntime& watching, Board& board, WatchHub& hub,
                History history, const Clock& clock)
      : runtime_(runtime),
        watching_(watching),
        board_(board),
        hub_(hub),
        history_(std::move(history)),
        clock_(clock) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchStatus(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* ReportProgress(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListNodes(grpc::CallbackServerContext* context,
                                      const v1::ListNodesRequest* request,
                                      v1::ListNodesResponse* response) override;
  grpc::ServerUnaryReactor* GetNode(grpc::CallbackServerContext* context,
                                    const v1::GetNodeRequest* request, v1::Node* response) override;

 private:
  absl::StatusOr<StatusQuery> MakeQuery(Call& call, const grpc::ByteBuffer& request) const;
  // Answers once the run has its pairs.
  void Get(const StatusQuery& query, const std::string& caller, grpc::ByteBuffer* response,
           Finish finish);

  const RpcRuntime runtime_;
  const RpcRuntime watching_;
  Board& board_;
  WatchHub& hub_;
  const History history_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_STATUS_SERVICE_H_
