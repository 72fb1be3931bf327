#include "services/relay/proxy/upload_into_spool.h"

#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/limits.h"

namespace muster {

absl::StatusOr<std::shared_ptr<MessageSink>> UploadIntoSpool::Start(
    std::shared_ptr<DownstreamStream> downstream, Spool& spool,
    const v1::UploadRequest::Start& start, UploadPeer peer, const std::string& node) {
  auto session = spool.Find(start.upload_id(), node);
  if (!session.ok()) {
    // A complete upload has no session: its sender receives the same answer again.
    if (!spool.IsComplete(start.upload_id(), node)) return session.status();
    session = std::shared_ptr<UploadSession>();
  }
  return std::shared_ptr<MessageSink>(new UploadIntoSpool(std::move(downstream), spool, start,
                                                          std::move(peer), *std::move(session)));
}

void UploadIntoSpool::HandleMessage(grpc::ByteBuffer message) {
  v1::UploadRequest request;
  if (!Parse(message, &request)) {
    return downstream_->End(errors::InvalidChunk("a message that cannot be parsed"));
  }
  {
    MutexLock lock(mutex_);
    finishing_ = request.has_finish();
  }
  switch (request.message_case()) {
    case v1::UploadRequest::kStart:
      return Attach();
    case v1::UploadRequest::kChunk:
      return HandleChunk(request.mutable_chunk());
    case v1::UploadRequest::kFinish:
      return HandleFinish(request.finish());
    case v1::UploadRequest::MESSAGE_NOT_SET:
      return downstream_->End(errors::InvalidChunk("an empty message"));
  }
}

void UploadIntoSpool::Attach() {
  if (session_ == nullptr) return downstream_->ReadNext();
  const bool queued = session_->strand().Post([self = shared_from_this()] {
    const auto attachment = self->session_->Attach(
        self->epoch_, self->peer_, [weak = self->weak_from_this()](const auto& why) {
          if (auto upload = weak.lock()) upload->downstream_->End(why);
        });
    if (!attachment.ok()) return self->downstream_->End(attachment.status());
    self->attachment_ = *attachment;
    self->downstream_->ReadNext();
  });
  if (!queued) downstream_->End(errors::Overloaded());
}

void UploadIntoSpool::HandleChunk(v1::UploadRequest::Chunk* chunk) {
  if (session_ == nullptr) {
    return downstream_->End(errors::InvalidChunk("the upload is already complete"));
  }
  if (chunk->raw_size() < 0 || chunk->raw_size() > kChunkMaxLarge) {
    return downstream_->End(errors::ChunkTooLarge(chunk->raw_size(), kChunkMaxLarge));
  }
  if (chunk->offset() < 0 || chunk->offset() > INT64_MAX - chunk->raw_size()) {
    return downstream_->End(errors::InvalidOffset(chunk->offset()));
  }
  UploadChunk converted;
  converted.offset = chunk->offset();
  converted.raw_size = chunk->raw_size();
  converted.crc32c = chunk->crc32c();
  converted.zstd = chunk->encoding() == v1::UploadRequest::ENCODING_ZSTD;
  converted.data = std::move(*chunk->mutable_data());
  const bool queued = session_->strand().Post(
      [self = shared_from_this(), converted = std::move(converted)]() mutable {
        const auto ack = self->session_->Append(self->attachment_, std::move(converted));
        if (!ack.ok()) return self->downstream_->End(ack.status());
        self->Acknowledge(*ack);
        self->downstream_->ReadNext();
      });
  if (!queued) downstream_->End(errors::Overloaded());
}

void UploadIntoSpool::Acknowledge(const UploadAck& ack) {
  v1::UploadResponse response;
  {
    MutexLock lock(mutex_);
    ack_ = ack;
    if (sending_) return;
    response = DequeueAck();
  }
  downstream_->Send(Serialize(response));
}

// Returns the newest ack, which the caller sends without the mutex.
v1::UploadResponse UploadIntoSpool::DequeueAck() {
  v1::UploadResponse response;
  response.mutable_ack()->set_written(ack_->written);
  response.mutable_ack()->set_durable(ack_->durable);
  ack_.reset();
  sending_ = true;
  return response;
}

void UploadIntoSpool::HandleSent() {
  v1::UploadResponse response;
  {
    MutexLock lock(mutex_);
    sending_ = false;
    if (!ack_) return;
    response = DequeueAck();
  }
  downstream_->Send(Serialize(response));
}

void UploadIntoSpool::HandleFinish(const v1::UploadRequest::Finish& finish) {
  if (session_ == nullptr) return ReplySpooled();
  UploadFinish converted;
  converted.size = finish.size();
  converted.crc32c = finish.crc32c();
  converted.sha256 = finish.sha256();
  converted.signature = finish.signature().value();
  converted.signer_chain_pem = finish.signature().certificate_chain_pem();
  if (!converted.sha256.empty() && converted.sha256.size() != 32) {
    return downstream_->End(errors::InvalidChunk("a SHA-256 that is not 32 bytes"));
  }
  const bool queued =
      session_->strand().Post([self = shared_from_this(), converted = std::move(converted)] {
        self->session_->Complete(self->attachment_, converted, [self](const auto& result) {
          if (!result.ok()) return self->downstream_->End(result.status());
          self->ReplySpooled();
        });
      });
  if (!queued) downstream_->End(errors::Overloaded());
}

void UploadIntoSpool::ReplySpooled() {
  const auto spooled = spool_.Receipt(id_);
  // The spool may have just delivered it: the sender opens it again and receives COMMITTED.
  if (!spooled) return downstream_->End(errors::UploadNotFound(id_));
  v1::UploadResponse response;
  *response.mutable_spooled() = *spooled;
  downstream_->End(absl::OkStatus(), Serialize(response));
}

void UploadIntoSpool::HandleHalfClose() {
  {
    MutexLock lock(mutex_);
    if (finishing_) return;
  }
  downstream_->End(absl::OkStatus());
}

void UploadIntoSpool::HandleEnd() {
  if (session_ == nullptr) return;
  const bool queued = session_->strand().Post(
      [self = shared_from_this()] { self->session_->Detach(self->attachment_); });
  if (!queued) {
    Log(LogLevel::kWarning, "the files of an upload stay open until the next sweep",
        {{"upload", id_}});
  }
}

}  // namespace muster
