#include "services/relay/files/share_upload_handler.h"

#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/rpc/limits.h"

namespace muster {

std::string OpenerOf(const Identity& caller) {
  if (const auto* node = std::get_if<NodeIdentity>(&caller.name)) return NodeOpener(node->name);
  const auto* service = std::get_if<ServiceIdentity>(&caller.name);
  if (service == nullptr || service->role != ServiceRole::kRelay) return "";
  return RelayOpener(service->name);
}

grpc::ServerReadReactor<v1::UploadShareRequest>* ShareUploadHandler::Start(
    const RpcRuntime& runtime, grpc::CallbackServerContext* context, ShareStore& store,
    std::function<void()> taken, v1::Share* response) {
  ServerStreamOptions options;
  options.on_executor = true;
  return StartServerStream<v1::UploadShareRequest, void>(
      runtime, context, "/muster.v1.ShareService/UploadShare", options,
      std::make_shared<ShareUploadHandler>(store, std::move(taken), response));
}

void ShareUploadHandler::OnStart(const std::shared_ptr<ServerStream<void>>& stream) {
  stream_ = stream;
  const absl::Status allowed = stream->call().Authorize(Resource::Own());
  if (!allowed.ok()) return stream->End(allowed);
  stream->ReadNext();
}

void ShareUploadHandler::OnMessage(v1::UploadShareRequest request) {
  const absl::Status status = Handle(request);
  if (status.ok() && !complete_) return stream_->ReadNext();
  upload_.reset();
  stream_->End(status);
}

void ShareUploadHandler::OnHalfClose() {
  stream_->End(absl::CancelledError("the stream ended without its finish"));
}

absl::Status ShareUploadHandler::Handle(const v1::UploadShareRequest& request) {
  if (request.has_start() == (upload_ != nullptr)) {
    return errors::InvalidChunk("a stream has one start, before anything else");
  }
  switch (request.message_case()) {
    case v1::UploadShareRequest::kStart:
      return Begin(request.start());
    case v1::UploadShareRequest::kChunk: {
      const v1::FileChunk& chunk = request.chunk();
      if (chunk.data().size() > kChunkMaxLarge) {
        return errors::ChunkTooLarge(static_cast<int64_t>(chunk.data().size()), kChunkMaxLarge);
      }
      return upload_->Append(epoch_, chunk.offset(), chunk.data(), chunk.crc32c());
    }
    case v1::UploadShareRequest::kFinish: {
      ASSIGN_OR_RETURN(auto held, store_.Complete(*upload_, epoch_));
      *response_ = std::move(held.share);
      complete_ = true;
      taken_();
      return absl::OkStatus();
    }
    case v1::UploadShareRequest::MESSAGE_NOT_SET:
      break;
  }
  return errors::InvalidChunk("a message without content");
}

absl::Status ShareUploadHandler::Begin(const v1::UploadShareRequest::Start& start) {
  ASSIGN_OR_RETURN(
      upload_, store_.FindUpload(start.upload_id(), OpenerOf(stream_->call().caller().identity)));
  epoch_ = start.epoch();
  return absl::OkStatus();
}

}  // namespace muster
