// muster.v1.ResultService: checks and translates requests; uploads.h and committer.h execute them.
#ifndef MUSTER_SERVICES_AGGREGATOR_RESULT_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_RESULT_SERVICE_H_

#include "muster/v1/results.grpc.pb.h"
#include "services/aggregator/runs/run_readers.h"
#include "services/aggregator/upload_handler.h"
#include "services/aggregator/uploads/result_committer.h"
#include "services/aggregator/uploads/spooled_proof.h"
#include "services/aggregator/uploads/uploads.h"
#include "services/common/base/clock.h"
#include "services/common/blob/blob_store.h"
#include "services/common/rpc/call.h"
#include "services/common/store/state_store.h"

namespace muster {

// Thread-safe.
class ResultService : public v1::ResultService::CallbackService {
 public:
  ResultService(const RpcRuntime& runtime, StateStore& store, BlobStore& blobs, Uploads& uploads,
                ResultCommitter& committer, const SpooledProofs& proofs, RunReaders& readers,
                const Clock& clock);

  grpc::ServerUnaryReactor* OpenUpload(grpc::CallbackServerContext* context,
                                       const v1::OpenUploadRequest* request,
                                       v1::OpenUploadResponse* response) override;
  grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse>* Upload(
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
  grpc::ServerUnaryReactor* ListResults(grpc::CallbackServerContext* context,
                                        const v1::ListResultsRequest* request,
                                        v1::ListResultsResponse* response) override;
  grpc::ServerWriteReactor<v1::FileChunk>* ReadResult(
      grpc::CallbackServerContext* context, const v1::ReadResultRequest* request) override;

 private:
  absl::StatusOr<UploadRecord> Describe(Call& call, const v1::ResultDescription& description,
                                        const v1::SpooledProof* proof) const;
  absl::StatusOr<UploadRecord> ToUpload(Call& call, const v1::OpenUploadRequest& request) const;
  absl::StatusOr<VerifiedResult> Verify(Call& call, const v1::SubmitResultRequest& request) const;

  const RpcRuntime runtime_;
  StateStore& store_;
  BlobStore& blobs_;
  Uploads& uploads_;
  ResultCommitter& committer_;
  const SpooledProofs& proofs_;
  RunReaders& readers_;
  const Clock& clock_;
  ReadAheadBudget read_ahead_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RESULT_SERVICE_H_
