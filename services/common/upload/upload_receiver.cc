#include "services/common/upload/upload_receiver.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/base/log.h"
#include "services/common/base/sha256.h"
#include "services/common/errors/results.h"
#include "services/common/errors/rpc.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/limits.h"
#include "services/common/upload/delivery_signature.h"

namespace muster {
namespace {

// An acknowledgement is sent after this much, and whenever nothing is left to store.
constexpr int64_t kAckEvery = 4 * 1024 * 1024;

}  // namespace

void UploadReceiver::Receive(v1::UploadRequest request) {
  const bool started = session_ != nullptr;
  switch (request.message_case()) {
    case v1::UploadRequest::kStart:
      return started ? connection_->End(errors::InvalidChunk("a second start"))
                     : ReceiveStart(request.start());
    case v1::UploadRequest::kChunk:
      return started ? ReceiveChunk(request.mutable_chunk())
                     : connection_->End(errors::InvalidChunk("it comes before the start"));
    case v1::UploadRequest::kFinish:
      return started ? ReceiveFinish(request.finish())
                     : connection_->End(errors::InvalidChunk("a finish before the start"));
    case v1::UploadRequest::MESSAGE_NOT_SET:
      return connection_->End(errors::InvalidChunk("an empty message"));
  }
}

void UploadReceiver::ReceiveStart(const v1::UploadRequest::Start& start) {
  auto session = connection_->FindSession(start);
  if (!session.ok()) return connection_->End(session.status());
  session_ = *std::move(session);
  const bool queued =
      session_->strand().Post([self = shared_from_this(), session = session_,
                               epoch = start.epoch()] { self->Attach(*session, epoch); });
  if (!queued) connection_->End(errors::Overloaded());
}

void UploadReceiver::Attach(UploadSession& session, int64_t epoch) {
  const auto attachment = session.Attach(
      epoch, connection_->Peer(),
      [weak = std::weak_ptr(connection_)](const absl::Status& why) {
        if (const auto connection = weak.lock()) connection->End(why);
      },
      [this] { return connection_->Count(); });
  if (!attachment.ok()) return connection_->End(attachment.status());
  attachment_ = *attachment;
  SetRead();
}

void UploadReceiver::SetRead() {
  {
    MutexLock lock(mutex_);
    reading_ = false;
  }
  ReadMore();
}

void UploadReceiver::ReadMore() {
  MutexLock lock(mutex_);
  if (reading_ || reads_closed_ || storing_ > 1 || unreserved_ > 0) return;
  reading_ = true;
  connection_->ReadNext();
}

void UploadReceiver::ReceiveChunk(v1::UploadRequest::Chunk* chunk) {
  if (chunk->raw_size() < 0 || chunk->raw_size() > kChunkMaxLarge) {
    return connection_->End(errors::ChunkTooLarge(chunk->raw_size(), kChunkMaxLarge));
  }
  const auto encoded = static_cast<int64_t>(chunk->data().size());
  if (encoded > kEncodedChunkMax) {
    return connection_->End(errors::ChunkTooLarge(encoded, kEncodedChunkMax));
  }
  if (!v1::UploadRequest::Encoding_IsValid(chunk->encoding())) {
    return connection_->End(errors::InvalidChunk(
        absl::StrCat("its encoding ", static_cast<int>(chunk->encoding()), " is unknown")));
  }
  UploadChunk received;
  received.offset = chunk->offset();
  received.raw_size = chunk->raw_size();
  received.crc32c = chunk->crc32c();
  received.zstd = chunk->encoding() == v1::UploadRequest::ENCODING_ZSTD;
  received.data = std::move(*chunk->mutable_data());
  const int64_t bytes = std::max(received.raw_size, encoded);
  const bool reserved = budget_.TryReserve(bytes);
  {
    MutexLock lock(mutex_);
    ++storing_;
    if (!reserved) ++unreserved_;
  }
  const bool queued = session_->strand().Post([self = shared_from_this(), session = session_,
                                               received = std::move(received), bytes,
                                               reserved]() mutable {
    self->HandleStored(session->Append(self->attachment_, std::move(received)), bytes, reserved);
  });
  if (!queued) {
    if (reserved) budget_.Release(bytes);
    return connection_->End(errors::Overloaded());
  }
  SetRead();
}

void UploadReceiver::HandleStored(const absl::StatusOr<UploadAck>& ack, int64_t bytes,
                                  bool reserved) {
  if (reserved) budget_.Release(bytes);
  {
    MutexLock lock(mutex_);
    --storing_;
    if (!reserved) --unreserved_;
    if (ack.ok()) ack_ = *ack;
  }
  if (!ack.ok()) return connection_->End(ack.status());
  SendDue();
  ReadMore();
}

void UploadReceiver::SendDue() {
  MutexLock lock(mutex_);
  if (!ack_ || (storing_ > 0 && ack_->written - acked_ < kAckEvery)) return;
  if (!connection_->SendAck(*ack_)) return;
  acked_ = ack_->written;
  ack_.reset();
}

void UploadReceiver::ReceiveFinish(const v1::UploadRequest::Finish& finish) {
  finished_ = true;
  {
    MutexLock lock(mutex_);
    reads_closed_ = true;
  }
  if (!finish.sha256().empty() && finish.sha256().size() != kSha256Size) {
    return connection_->End(errors::InvalidChunk("a SHA-256 that is not 32 bytes"));
  }
  if (const absl::Status valid = ValidateSignature(finish.signature()); !valid.ok()) {
    return connection_->End(valid);
  }
  UploadFinish received;
  received.size = finish.size();
  received.crc32c = finish.crc32c();
  received.sha256 = finish.sha256();
  received.signature = finish.signature().value();
  received.signer_chain_pem = finish.signature().certificate_chain_pem();
  const bool queued = session_->strand().Post(
      [self = shared_from_this(), session = session_, received = std::move(received)] {
        session->Complete(self->attachment_, received,
                          [self, session](absl::StatusOr<ResultRecord> result) {
                            if (!result.ok()) return self->connection_->End(result.status());
                            self->connection_->EndCommitted(*session, *std::move(result));
                          });
      });
  if (!queued) connection_->End(errors::Overloaded());
}

void UploadReceiver::HalfClosed() {
  if (finished_) return;
  if (session_ == nullptr) return connection_->End(errors::NoReadableMessage());
  // After the pending chunks: the stream may end with the error of one.
  const bool queued = session_->strand().Post([self = shared_from_this(), session = session_] {
    self->connection_->End(errors::NoReadableMessage());
  });
  if (!queued) connection_->End(errors::Overloaded());
}

void UploadReceiver::Ended() {
  if (session_ == nullptr) return;
  const bool queued = session_->strand().Post(
      [self = shared_from_this(), session = session_] { session->Detach(self->attachment_); });
  if (!queued) {
    Log(LogLevel::kWarning, "the file of an upload stays open until the next sweep",
        {{"upload", session_->id()}});
  }
}

}  // namespace muster
