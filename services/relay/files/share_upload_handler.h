// One UploadShare stream: a chunk is stored before the next one is read.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_HANDLER_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_HANDLER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "muster/v1/shares.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/server_stream.h"
#include "services/common/upload/upload_session.h"
#include "services/relay/files/share_parts.h"
#include "services/relay/files/share_store.h"

namespace muster {

// Its callbacks run on gRPC's threads and do not wait: the strand of the upload's session does the
// work. Tasks of the strand keep the handler.
class ShareUploadHandler : public ServerStreamHandler<v1::UploadShareRequest, void>,
                           public std::enable_shared_from_this<ShareUploadHandler> {
 public:
  // `store` and `routing` outlive the stream. `routing` is woken when a file is complete.
  static grpc::ServerReadReactor<v1::UploadShareRequest>* Start(
      const RpcRuntime& runtime, grpc::CallbackServerContext* context, ShareStore& store,
      ShareRouting& routing, v1::Share* response);

  ShareUploadHandler(ShareStore& store, ShareRouting& routing, v1::Share* response)
      : store_(store), routing_(routing), response_(response) {}

  void OnStart(const std::shared_ptr<ServerStream<void>>& stream) override;
  void OnMessage(v1::UploadShareRequest request) override;
  void OnHalfClose() override;
  void OnEnd(const absl::Status& status, EndedBy by) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Handle(v1::UploadShareRequest& request);
  absl::Status Begin(const v1::UploadShareRequest::Start& start);
  absl::Status Append(v1::FileChunk& chunk);
  absl::Status Finish();
  // Runs `work` on the strand of the session.
  absl::Status Post(absl::AnyInvocable<void(ShareUploadHandler& self)> work);
  void Answer(absl::StatusOr<v1::Share> share) ABSL_LOCKS_EXCLUDED(mutex_);

  ShareStore& store_;
  ShareRouting& routing_;
  std::shared_ptr<ServerStream<void>> stream_;
  std::shared_ptr<UploadSession> session_;  // set by the start
  bool finishing_ = false;                  // of the callbacks alone
  UploadAttachment attachment_;             // of the strand alone

  Mutex mutex_;
  v1::Share* response_ ABSL_GUARDED_BY(mutex_);  // null after the end of the call
};

// Returns the opener of the uploads that a caller may send; empty if it may send none.
std::string OpenerOf(const Identity& caller);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_HANDLER_H_
