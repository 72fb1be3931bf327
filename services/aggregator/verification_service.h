// muster.v1.VerificationService.
#ifndef MUSTER_SERVICES_AGGREGATOR_VERIFICATION_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_VERIFICATION_SERVICE_H_

#include "muster/v1/verification.grpc.pb.h"
#include "services/aggregator/verify/read_failures.h"
#include "services/common/base/clock.h"
#include "services/common/blob/blob_store.h"
#include "services/common/rpc/call.h"
#include "services/common/rpc/stream.h"
#include "services/common/store/state_store.h"

namespace muster {

// Thread-safe.
class VerificationService : public v1::VerificationService::CallbackService {
 public:
  // `failures` counts unreadable blobs, also for others.
  VerificationService(const RpcRuntime& runtime, StateStore& store, BlobStore& blobs,
                      const Clock& clock, ReadFailures& failures)
      : runtime_(runtime), store_(store), blobs_(blobs), clock_(clock), failures_(failures) {}

  grpc::ServerWriteReactor<v1::VerifyStoreResponse>* VerifyStore(
      grpc::CallbackServerContext* context, const v1::VerifyStoreRequest* request) override;

 private:
  const RpcRuntime runtime_;
  StateStore& store_;
  BlobStore& blobs_;
  const Clock& clock_;
  ReadFailures& failures_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_VERIFICATION_SERVICE_H_
