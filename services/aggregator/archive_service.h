// muster.v1.ArchiveService.
#ifndef MUSTER_SERVICES_AGGREGATOR_ARCHIVE_SERVICE_H_
#define MUSTER_SERVICES_AGGREGATOR_ARCHIVE_SERVICE_H_

#include "muster/v1/archives.grpc.pb.h"
#include "services/aggregator/runs/run_readers.h"
#include "services/aggregator/runs/runs.h"
#include "services/common/base/clock.h"
#include "services/common/blob/blob_store.h"
#include "services/common/rpc/call.h"
#include "services/common/rpc/stream.h"
#include "services/common/store/state_store.h"

namespace muster {

// Thread-safe.
class ArchiveService : public v1::ArchiveService::CallbackService {
 public:
  ArchiveService(const RpcRuntime& runtime, Runs& runs, StateStore& store, BlobStore& blobs,
                 RunReaders& readers, const Clock& clock)
      : runtime_(runtime),
        runs_(runs),
        store_(store),
        blobs_(blobs),
        readers_(readers),
        clock_(clock) {}

  grpc::ServerUnaryReactor* GetArchive(grpc::CallbackServerContext* context,
                                       const v1::GetArchiveRequest* request,
                                       v1::Archive* response) override;
  grpc::ServerWriteReactor<v1::FileChunk>* ReadArchive(
      grpc::CallbackServerContext* context, const v1::ReadArchiveRequest* request) override;

 private:
  absl::StatusOr<ArchiveRecord> Find(const std::string& run);

  const RpcRuntime runtime_;
  Runs& runs_;
  StateStore& store_;
  BlobStore& blobs_;
  RunReaders& readers_;
  const Clock& clock_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_ARCHIVE_SERVICE_H_
