#include "services/relay/files/share_upload_handler.h"

#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/rpc.h"
#include "services/common/errors/runs.h"
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
    ShareRouting& routing, v1::Share* response) {
  return StartServerStream<v1::UploadShareRequest, void>(
      runtime, context, "/muster.v1.ShareService/UploadShare", ServerStreamOptions(),
      std::make_shared<ShareUploadHandler>(store, routing, response));
}

void ShareUploadHandler::OnStart(const std::shared_ptr<ServerStream<void>>& stream) {
  stream_ = stream;
  const absl::Status allowed = stream->call().Authorize(Resource::Own());
  if (!allowed.ok()) return stream->End(allowed);
  stream->ReadNext();
}

void ShareUploadHandler::OnMessage(v1::UploadShareRequest request) {
  if (const absl::Status status = Handle(request); !status.ok()) stream_->End(status);
}

void ShareUploadHandler::OnHalfClose() {
  if (!finishing_) stream_->End(errors::NoReadableMessage());
}

void ShareUploadHandler::OnEnd(const absl::Status&, EndedBy) {
  {
    MutexLock lock(mutex_);
    response_ = nullptr;
  }
  if (session_ == nullptr) return;
  const absl::Status posted =
      Post([](ShareUploadHandler& self) { self.session_->Detach(self.attachment_); });
  if (posted.ok()) return;
  Log(LogLevel::kWarning, "the files of an upload stay open until the next sweep",
      {{"upload", session_->id()}});
}

absl::Status ShareUploadHandler::Post(absl::AnyInvocable<void(ShareUploadHandler& self)> work) {
  const bool queued = session_->strand().Post(
      [self = shared_from_this(), work = std::move(work)]() mutable { work(*self); });
  return queued ? absl::OkStatus() : errors::Overloaded();
}

absl::Status ShareUploadHandler::Handle(v1::UploadShareRequest& request) {
  if (request.has_start() == (session_ != nullptr)) {
    return errors::InvalidChunk("a stream has one start, before anything else");
  }
  switch (request.message_case()) {
    case v1::UploadShareRequest::kStart:
      return Begin(request.start());
    case v1::UploadShareRequest::kChunk:
      return Append(*request.mutable_chunk());
    case v1::UploadShareRequest::kFinish:
      return Finish();
    case v1::UploadShareRequest::MESSAGE_NOT_SET:
      break;
  }
  return errors::InvalidChunk("a message without content");
}

absl::Status ShareUploadHandler::Begin(const v1::UploadShareRequest::Start& start) {
  ASSIGN_OR_RETURN(
      session_, store_.FindUpload(start.upload_id(), OpenerOf(stream_->call().caller().identity)));
  return Post([epoch = start.epoch()](ShareUploadHandler& self) {
    const auto attachment = self.session_->Attach(
        epoch, UploadPeer(), [weak = self.weak_from_this()](const absl::Status& why) {
          if (const auto handler = weak.lock()) handler->stream_->End(why);
        });
    if (!attachment.ok()) return self.stream_->End(attachment.status());
    self.attachment_ = *attachment;
    self.stream_->ReadNext();
  });
}

absl::Status ShareUploadHandler::Append(v1::FileChunk& chunk) {
  const auto size = static_cast<int64_t>(chunk.data().size());
  if (size > kChunkMaxLarge) return errors::ChunkTooLarge(size, kChunkMaxLarge);
  UploadChunk received;
  received.offset = chunk.offset();
  received.raw_size = size;
  received.crc32c = chunk.crc32c();
  received.data = std::move(*chunk.mutable_data());
  return Post([received = std::move(received)](ShareUploadHandler& self) mutable {
    const auto ack = self.session_->Append(self.attachment_, std::move(received));
    if (!ack.ok()) return self.stream_->End(ack.status());
    self.stream_->ReadNext();
  });
}

absl::Status ShareUploadHandler::Finish() {
  finishing_ = true;
  return Post([](ShareUploadHandler& self) {
    self.store_.Complete(*self.session_, self.attachment_,
                         [handler = self.shared_from_this()](absl::StatusOr<v1::Share> share) {
                           handler->Answer(std::move(share));
                         });
  });
}

void ShareUploadHandler::Answer(absl::StatusOr<v1::Share> share) {
  const absl::Status status = share.status();
  if (status.ok()) {
    MutexLock lock(mutex_);
    if (response_ != nullptr) *response_ = *std::move(share);
  }
  stream_->End(status);
  if (status.ok()) routing_.Wake();
}

}  // namespace muster
