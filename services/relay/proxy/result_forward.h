// muster.v1.ResultService at a relay: results are forwarded, or spooled without an upstream
// connection.
#ifndef MUSTER_SERVICES_RELAY_PROXY_RESULT_FORWARD_H_
#define MUSTER_SERVICES_RELAY_PROXY_RESULT_FORWARD_H_

#include <memory>

#include "muster/v1/results.grpc.pb.h"
#include "services/common/upload/read_ahead_budget.h"
#include "services/relay/proxy/downstream_stream.h"
#include "services/relay/proxy/upload_owners.h"
#include "services/relay/proxy/upstream_call.h"
#include "services/relay/spool/spool.h"

namespace muster {

// Upload is forwarded without parsing its messages.
using ResultServiceBase = v1::ResultService::WithCallbackMethod_OpenUpload<
    v1::ResultService::WithRawCallbackMethod_Upload<
        v1::ResultService::WithCallbackMethod_SubmitResult<
            v1::ResultService::WithCallbackMethod_GetResult<
                v1::ResultService::WithCallbackMethod_DeclineRedelivery<
                    v1::ResultService::WithCallbackMethod_ListResults<
                        v1::ResultService::WithCallbackMethod_ReadResult<
                            v1::ResultService::Service>>>>>>>;

// Thread-safe.
class ResultForward : public ResultServiceBase {
 public:
  // Streams hold `uploads`: wait for them (Admission::AwaitNone) before the destruction. `spool` is
  // null if results are not spooled.
  ResultForward(const ForwardParts& parts, Admission& uploads, ReadAheadBudget& ahead, Spool* spool)
      : parts_(parts), uploads_(uploads), ahead_(ahead), spool_(spool) {}

  grpc::ServerUnaryReactor* OpenUpload(grpc::CallbackServerContext* context,
                                       const v1::OpenUploadRequest* request,
                                       v1::OpenUploadResponse* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Upload(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* SubmitResult(grpc::CallbackServerContext* context,
                                         const v1::SubmitResultRequest* request,
                                         v1::Result* response) override;
  grpc::ServerUnaryReactor* GetResult(grpc::CallbackServerContext* context,
                                      const v1::GetResultRequest* request,
                                      v1::Result* response) override;
  grpc::ServerUnaryReactor* DeclineRedelivery(grpc::CallbackServerContext* context,
                                              const v1::DeclineRedeliveryRequest* request,
                                              v1::DeclineRedeliveryResponse* response) override;

  // RELAY_DOES_NOT_SERVE.
  grpc::ServerUnaryReactor* ListResults(grpc::CallbackServerContext* context,
                                        const v1::ListResultsRequest*,
                                        v1::ListResultsResponse*) override;
  grpc::ServerWriteReactor<v1::FileChunk>* ReadResult(grpc::CallbackServerContext* context,
                                                      const v1::ReadResultRequest*) override;

 private:
  class Opening;

  absl::StatusOr<std::shared_ptr<MessageSink>> ChooseSink(
      Call& call, const grpc::ByteBuffer& first,
      const std::shared_ptr<DownstreamStream>& downstream);

  const ForwardParts parts_;
  Admission& uploads_;
  ReadAheadBudget& ahead_;
  Spool* const spool_;
  UploadOwners owners_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_RESULT_FORWARD_H_
