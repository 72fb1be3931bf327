// One UploadShare stream: a chunk is on the disk before the next is read.
#ifndef MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_HANDLER_H_
#define MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_HANDLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "muster/v1/shares.pb.h"
#include "services/common/rpc/server_stream.h"
#include "services/relay/files/share_store.h"

namespace muster {

// Its callbacks run on the executor.
class ShareUploadHandler : public ServerStreamHandler<v1::UploadShareRequest, void> {
 public:
  // `taken` is called when a file is complete.
  static grpc::ServerReadReactor<v1::UploadShareRequest>* Start(
      const RpcRuntime& runtime, grpc::CallbackServerContext* context, ShareStore& store,
      std::function<void()> taken, v1::Share* response);

  ShareUploadHandler(ShareStore& store, std::function<void()> taken, v1::Share* response)
      : store_(store), taken_(std::move(taken)), response_(response) {}

  void OnStart(const std::shared_ptr<ServerStream<void>>& stream) override;
  void OnMessage(v1::UploadShareRequest request) override;
  void OnHalfClose() override;

 private:
  absl::Status Handle(const v1::UploadShareRequest& request);
  absl::Status Begin(const v1::UploadShareRequest::Start& start);

  ShareStore& store_;
  const std::function<void()> taken_;
  v1::Share* const response_;
  std::shared_ptr<ServerStream<void>> stream_;
  std::shared_ptr<ShareUpload> upload_;
  int64_t epoch_ = 0;
  bool complete_ = false;
};

// The opener of an upload that a caller may send; empty for who may send none.
std::string OpenerOf(const Identity& caller);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_FILES_SHARE_UPLOAD_HANDLER_H_
