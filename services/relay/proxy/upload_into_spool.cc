#include "services/relay/proxy/upload_into_spool.h"

#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/limits.h"

namespace muster {

absl::StatusOr<std::shared_ptr<MessageSink>> UploadIntoSpool::Start(
    std::shared_ptr<DownstreamStream> below, Spool& spool, const v1::UploadRequest::Start& start,
    UploadPeer peer, const std::string& node) {
  auto session = spool.Find(start.upload_id(), node);
  if (!session.ok()) {
    // What is complete has no session any more: its sender may be told so once more.
    if (!spool.IsComplete(start.upload_id(), node)) return session.status();
    session = std::shared_ptr<UploadSession>();
  }
  return std::shared_ptr<MessageSink>(
      new UploadIntoSpool(std::move(below), spool, start, std::move(peer), *std::move(session)));
}

void UploadIntoSpool::Take(grpc::ByteBuffer message) {
  v1::UploadRequest request;
  if (!Parse(message, &request)) {
    return below_->End(errors::InvalidChunk("a message that cannot be read"));
  }
  {
    MutexLock lock(mutex_);
    finishing_ = request.has_finish();
  }
  switch (request.message_case()) {
    case v1::UploadRequest::kStart:
      return Attach();
    case v1::UploadRequest::kChunk:
      return TakeChunk(request.mutable_chunk());
    case v1::UploadRequest::kFinish:
      return TakeFinish(request.finish());
    case v1::UploadRequest::MESSAGE_NOT_SET:
      return below_->End(errors::InvalidChunk("an empty message"));
  }
}

void UploadIntoSpool::Attach() {
  if (session_ == nullptr) return below_->ReadNext();
  const bool queued = session_->strand().Post([self = shared_from_this()] {
    const auto attachment = self->session_->Attach(
        self->epoch_, self->peer_, [weak = self->weak_from_this()](const auto& why) {
          if (auto upload = weak.lock()) upload->below_->End(why);
        });
    if (!attachment.ok()) return self->below_->End(attachment.status());
    self->attachment_ = *attachment;
    self->below_->ReadNext();
  });
  if (!queued) below_->End(errors::Overloaded());
}

void UploadIntoSpool::TakeChunk(v1::UploadRequest::Chunk* chunk) {
  if (session_ == nullptr) {
    return below_->End(errors::InvalidChunk("the upload was complete before"));
  }
  if (chunk->raw_size() < 0 || chunk->raw_size() > kChunkMaxLarge) {
    return below_->End(errors::ChunkTooLarge(chunk->raw_size(), kChunkMaxLarge));
  }
  if (chunk->offset() < 0 || chunk->offset() > INT64_MAX - chunk->raw_size()) {
    return below_->End(errors::InvalidOffset(chunk->offset()));
  }
  UploadChunk taken;
  taken.offset = chunk->offset();
  taken.raw_size = chunk->raw_size();
  taken.crc32c = chunk->crc32c();
  taken.zstd = chunk->encoding() == v1::UploadRequest::ENCODING_ZSTD;
  taken.data = std::move(*chunk->mutable_data());
  const bool queued =
      session_->strand().Post([self = shared_from_this(), taken = std::move(taken)]() mutable {
        const auto ack = self->session_->Append(self->attachment_, std::move(taken));
        if (!ack.ok()) return self->below_->End(ack.status());
        self->Acknowledge(*ack);
        self->below_->ReadNext();
      });
  if (!queued) below_->End(errors::Overloaded());
}

void UploadIntoSpool::Acknowledge(const UploadAck& ack) {
  v1::UploadResponse response;
  {
    MutexLock lock(mutex_);
    ack_ = ack;
    if (sending_) return;
    response = TakeAck();
  }
  below_->Send(Serialize(response));
}

// Returns the message with the newest acknowledgement, which the caller sends without the mutex.
v1::UploadResponse UploadIntoSpool::TakeAck() {
  v1::UploadResponse response;
  response.mutable_ack()->set_written(ack_->written);
  response.mutable_ack()->set_durable(ack_->durable);
  ack_.reset();
  sending_ = true;
  return response;
}

void UploadIntoSpool::Sent() {
  v1::UploadResponse response;
  {
    MutexLock lock(mutex_);
    sending_ = false;
    if (!ack_) return;
    response = TakeAck();
  }
  below_->Send(Serialize(response));
}

void UploadIntoSpool::TakeFinish(const v1::UploadRequest::Finish& finish) {
  if (session_ == nullptr) return Spooled();
  UploadFinish taken;
  taken.size = finish.size();
  taken.crc32c = finish.crc32c();
  taken.sha256 = finish.sha256();
  taken.signature = finish.signature().value();
  taken.signer_chain_pem = finish.signature().certificate_chain_pem();
  if (!taken.sha256.empty() && taken.sha256.size() != 32) {
    return below_->End(errors::InvalidChunk("a SHA-256 that is not 32 bytes"));
  }
  const bool queued =
      session_->strand().Post([self = shared_from_this(), taken = std::move(taken)] {
        self->session_->Complete(self->attachment_, taken, [self](const auto& result) {
          if (!result.ok()) return self->below_->End(result.status());
          self->Spooled();
        });
      });
  if (!queued) below_->End(errors::Overloaded());
}

void UploadIntoSpool::Spooled() {
  const auto told = spool_.Receipt(id_);
  // It may have been delivered in this very moment: the sender asks, and finds it committed.
  if (!told) return below_->End(errors::UploadNotFound(id_));
  v1::UploadResponse response;
  *response.mutable_spooled() = *told;
  below_->End(absl::OkStatus(), Serialize(response));
}

void UploadIntoSpool::HalfClosed() {
  {
    MutexLock lock(mutex_);
    if (finishing_) return;
  }
  below_->End(absl::OkStatus());
}

void UploadIntoSpool::Over() {
  if (session_ == nullptr) return;
  const bool queued = session_->strand().Post(
      [self = shared_from_this()] { self->session_->Detach(self->attachment_); });
  if (!queued) {
    Log(LogLevel::kWarning, "an upload's file stays open until its next stream", {{"upload", id_}});
  }
}

}  // namespace muster
