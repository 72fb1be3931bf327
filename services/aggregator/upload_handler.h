// The stream that carries an upload. UploadReceiver handles its messages.
#ifndef MUSTER_SERVICES_AGGREGATOR_UPLOAD_HANDLER_H_
#define MUSTER_SERVICES_AGGREGATOR_UPLOAD_HANDLER_H_

#include <memory>

#include "muster/v1/results.pb.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/rpc/server_stream.h"
#include "services/common/upload/read_ahead_budget.h"
#include "services/common/upload/upload_receiver.h"

namespace muster {

// Passes the callbacks of the stream to its receiver. They run on gRPC's threads: disk and hashes
// are the matter of the session's strand.
class UploadHandler : public ServerStreamHandler<v1::UploadRequest, v1::UploadResponse> {
 public:
  static grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse>* Start(
      const RpcRuntime& runtime, grpc::CallbackServerContext* context, Uploads& uploads,
      ReadAheadBudget& budget);

  UploadHandler(Uploads& uploads, ReadAheadBudget& budget) : uploads_(uploads), budget_(budget) {}

  void OnStart(const std::shared_ptr<ServerStream<v1::UploadResponse>>& stream) override;
  void OnMessage(v1::UploadRequest request) override;
  void OnHalfClose() override { receiver_->HalfClosed(); }
  void OnWritable() override { receiver_->SendDue(); }
  void OnEnd(const absl::Status& status, EndedBy by) override { receiver_->Ended(); }

 private:
  Uploads& uploads_;
  ReadAheadBudget& budget_;
  std::shared_ptr<UploadReceiver> receiver_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_UPLOAD_HANDLER_H_
