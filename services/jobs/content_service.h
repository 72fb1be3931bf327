// The RPCs of contents: checks and translates.
#ifndef MUSTER_SERVICES_JOBS_CONTENT_SERVICE_H_
#define MUSTER_SERVICES_JOBS_CONTENT_SERVICE_H_

#include "muster/v1/contents.grpc.pb.h"
#include "services/common/rpc/call.h"
#include "services/jobs/content_store.h"
#include "services/jobs/workspace_reader.h"

namespace muster {

// Thread-safe.
class ContentService final : public v1::ContentService::CallbackService {
 public:
  // `store` and `workspaces` outlive the service. The handlers hash and wait for the disk on the
  // executor of `runtime`.
  ContentService(const RpcRuntime& runtime, ContentStore& store, WorkspaceReader& workspaces)
      : runtime_(runtime), store_(store), workspaces_(workspaces) {}

  grpc::ServerUnaryReactor* FindContents(grpc::CallbackServerContext* context,
                                         const v1::FindContentsRequest* request,
                                         v1::FindContentsResponse* response) override;
  grpc::ServerUnaryReactor* UploadContent(grpc::CallbackServerContext* context,
                                          const v1::UploadContentRequest* request,
                                          v1::UploadContentResponse* response) override;
  grpc::ServerUnaryReactor* ReadContent(grpc::CallbackServerContext* context,
                                        const v1::ReadContentRequest* request,
                                        v1::ReadContentResponse* response) override;

 private:
  absl::Status Find(Call& call, const v1::FindContentsRequest& request,
                    v1::FindContentsResponse* response);
  absl::Status Upload(Call& call, const v1::UploadContentRequest& request,
                      v1::UploadContentResponse* response);
  absl::Status Read(Call& call, const v1::ReadContentRequest& request,
                    v1::ReadContentResponse* response);

  const RpcRuntime runtime_;
  ContentStore& store_;
  WorkspaceReader& workspaces_;  // nodes read their versions as contents
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_CONTENT_SERVICE_H_
