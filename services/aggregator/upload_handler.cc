#include "services/aggregator/upload_handler.h"

#include <utility>

#include "services/aggregator/convert.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/results.h"
#include "services/common/errors/runs.h"
#include "services/common/rpc/limits.h"

namespace muster {
namespace {

constexpr std::string_view kMethod = "/muster.v1.ResultService/Upload";

// An acknowledgement goes out after this much, and whenever nothing is left to store.
constexpr int64_t kAckEvery = 4 * 1024 * 1024;

}  // namespace

UploadHandler* UploadHandler::Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                    Uploads& uploads, ReadAheadBudget& budget) {
  std::shared_ptr<UploadHandler> reactor(new UploadHandler(runtime, context, uploads, budget));
  reactor->self_ = reactor;
  if (!reactor->call_.caller_status().ok()) {
    reactor->End(reactor->call_.caller_status());
  } else if (const absl::Status status = uploads.AddStream(); !status.ok()) {
    reactor->End(status);
  } else {
    {
      MutexLock lock(reactor->mutex_);
      reactor->counted_ = true;
      reactor->reading_ = true;
    }
    reactor->StartRead(&reactor->request_);
  }
  return reactor.get();
}

UploadHandler::UploadHandler(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                             Uploads& uploads, ReadAheadBudget& budget)
    : runtime_(runtime), uploads_(uploads), budget_(budget), call_(runtime, context, kMethod) {}

// While the message is being taken out of request_ it counts as being read: a chunk that was stored
// meanwhile must not let the next one be read over it, and overtake it.
void UploadHandler::OnReadDone(bool ok) {
  const bool started = Session() != nullptr;
  if (!ok) {
    // The sender is gone, or has half-closed. Without a finish the upload stays open.
    bool finishing = false;
    {
      MutexLock lock(mutex_);
      reading_ = false;
      finishing = finishing_;
    }
    if (!finishing) {
      End(started ? absl::OkStatus() : errors::InvalidChunk("the stream ended before its start"));
    }
    return;
  }
  switch (request_.message_case()) {
    case v1::UploadRequest::kStart:
      return started ? End(errors::InvalidChunk("a second start")) : Begin(request_.start());
    case v1::UploadRequest::kChunk:
      return started ? TakeChunk(request_.mutable_chunk())
                     : End(errors::InvalidChunk("it precedes the start"));
    case v1::UploadRequest::kFinish:
      return started ? TakeFinish(request_.finish())
                     : End(errors::InvalidChunk("a finish before the start"));
    case v1::UploadRequest::MESSAGE_NOT_SET:
      return End(errors::InvalidChunk("an empty message"));
  }
}

void UploadHandler::Begin(const v1::UploadRequest::Start& start) {
  const bool queued = runtime_.executor->Post([self = shared_from_this(), start] {
    const absl::Status status = self->AttachTo(start);
    if (!status.ok()) return self->End(status);
    self->MessageTaken();
  });
  if (!queued) End(errors::Overloaded());
}

absl::Status UploadHandler::AttachTo(const v1::UploadRequest::Start& start) {
  auto session = uploads_.Find(start.upload_id());
  // Not found is told to nobody who was not allowed to look.
  const ResultKey key = session.ok() ? (*session)->key() : ResultKey{};
  if (!session.ok()) {
    const absl::Status allowed = call_.Authorize(OwnPair(call_.caller()));
    return allowed.ok() ? session.status() : allowed;
  }
  RETURN_IF_ERROR(call_.Authorize(Resource::Pair(key.run, key.plugin, key.node)));
  // Under one lock: OnDone either prevents the attach, or posts its detach after it.
  MutexLock lock(mutex_);
  if (done_) return absl::CancelledError("the call was cancelled");
  session_ = *session;
  const bool queued =
      session_->strand().Post([self = shared_from_this(), session = session_,
                               epoch = start.epoch()] { self->Attach(*session, epoch); });
  return queued ? absl::OkStatus() : errors::Overloaded();
}

// Runs on the session's strand.
void UploadHandler::Attach(UploadSession& session, int64_t epoch) {
  const auto attachment =
      session.Attach(epoch, PeerOf(call_.caller()), [weak = weak_from_this()](const auto& why) {
        if (auto reactor = weak.lock()) reactor->End(why);
      });
  if (!attachment.ok()) return End(attachment.status());
  attachment_ = *attachment;
}

std::shared_ptr<UploadSession> UploadHandler::Session() const {
  MutexLock lock(mutex_);
  return session_;
}

void UploadHandler::MessageTaken() {
  {
    MutexLock lock(mutex_);
    reading_ = false;
  }
  ReadMore();
}

// Reads the next message if none is being read and there is room for what it may bring: one chunk,
// and a second one if the first is paid for by the budget.
void UploadHandler::ReadMore() {
  MutexLock lock(mutex_);
  if (reading_ || finishing_ || ended_ || end_) return;
  if (storing_ > 1 || unpaid_ > 0) return;
  reading_ = true;
  StartRead(&request_);
}

void UploadHandler::TakeChunk(v1::UploadRequest::Chunk* chunk) {
  if (chunk->raw_size() < 0 || chunk->raw_size() > kChunkMaxLarge) {
    return End(errors::ChunkTooLarge(chunk->raw_size(), kChunkMaxLarge));
  }
  UploadChunk taken;
  taken.offset = chunk->offset();
  taken.raw_size = chunk->raw_size();
  taken.crc32c = chunk->crc32c();
  taken.zstd = chunk->encoding() == v1::UploadRequest::ENCODING_ZSTD;
  taken.data = std::move(*chunk->mutable_data());
  const int64_t bytes = taken.raw_size;
  const bool ahead = budget_.TryTake(bytes);
  {
    MutexLock lock(mutex_);
    if (finishing_) {
      if (ahead) budget_.Return(bytes);
      return;
    }
    ++storing_;
    if (!ahead) ++unpaid_;
  }
  const auto session = Session();
  const bool queued = session->strand().Post(
      [self = shared_from_this(), session, taken = std::move(taken), bytes, ahead]() mutable {
        self->ChunkDone(session->Append(self->attachment_, std::move(taken)), bytes, ahead);
      });
  if (!queued) {
    if (ahead) budget_.Return(bytes);
    return End(errors::Overloaded());
  }
  MessageTaken();
}

void UploadHandler::ChunkDone(const absl::StatusOr<UploadAck>& ack, int64_t bytes, bool ahead) {
  if (ahead) budget_.Return(bytes);
  {
    MutexLock lock(mutex_);
    --storing_;
    if (!ahead) --unpaid_;
    if (ack.ok()) ack_ = *ack;
  }
  if (!ack.ok()) return End(ack.status());
  SendAck();
  ReadMore();
}

void UploadHandler::SendAck() {
  MutexLock lock(mutex_);
  if (writing_ || ended_ || end_ || committed_ || !ack_) return;
  if (storing_ > 0 && ack_->written - acked_ < kAckEvery) return;
  acked_ = ack_->written;
  response_.mutable_ack()->set_written(ack_->written);
  response_.mutable_ack()->set_durable(ack_->durable);
  ack_.reset();
  writing_ = true;
  StartWrite(&response_);
}

void UploadHandler::TakeFinish(const v1::UploadRequest::Finish& finish) {
  UploadFinish taken;
  taken.size = finish.size();
  taken.crc32c = finish.crc32c();
  taken.sha256 = finish.sha256();
  taken.signature = finish.signature().value();
  taken.signer_chain_pem = finish.signature().certificate_chain_pem();
  {
    MutexLock lock(mutex_);
    finishing_ = true;
  }
  if (!taken.sha256.empty() && taken.sha256.size() != 32) {
    return End(errors::InvalidChunk("a SHA-256 that is not 32 bytes"));
  }
  const auto session = Session();
  const bool queued =
      session->strand().Post([self = shared_from_this(), session, taken = std::move(taken)] {
        session->Complete(self->attachment_, taken, [self](absl::StatusOr<ResultRecord> result) {
          self->Committed(std::move(result));
        });
      });
  if (!queued) End(errors::Overloaded());
}

void UploadHandler::Committed(absl::StatusOr<ResultRecord> result) {
  if (!result.ok()) return End(result.status());
  const auto session = Session();
  uploads_.Forget(session->id());
  // The session may go with its staged bytes once its stream does.
  if (!session->strand().Post([session] { session->Close(); })) {
    Log(LogLevel::kWarning, "staged bytes are kept until the next start",
        {{"upload", session->id()}});
  }
  MutexLock lock(mutex_);
  if (ended_ || end_) return;
  committed_ = *std::move(result);
  if (writing_) return;
  response_.Clear();
  *response_.mutable_committed() = ToProto(*committed_);
  ended_ = true;
  StartWriteAndFinish(&response_, grpc::WriteOptions(), call_.Final(absl::OkStatus()));
}

void UploadHandler::OnWriteDone(bool ok) {
  MutexLock lock(mutex_);
  writing_ = false;
  if (ended_) return;
  if (end_) {
    ended_ = true;
    const grpc::Status status = call_.Final(*end_);
    lock.Unlock();
    Finish(status);
    return;
  }
  if (committed_) {
    response_.Clear();
    *response_.mutable_committed() = ToProto(*committed_);
    ended_ = true;
    StartWriteAndFinish(&response_, grpc::WriteOptions(), call_.Final(absl::OkStatus()));
    return;
  }
  lock.Unlock();
  if (!ok) return End(absl::CancelledError("the sender disconnected"));
  SendAck();
}

void UploadHandler::OnCancel() { End(absl::CancelledError("the call was cancelled")); }

void UploadHandler::End(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (ended_ || end_) return;
  end_ = status;
  if (writing_) return;
  ended_ = true;
  const grpc::Status final = call_.Final(status);
  lock.Unlock();
  Finish(final);
}

void UploadHandler::OnDone() {
  std::shared_ptr<UploadSession> session;
  bool counted = false;
  {
    MutexLock lock(mutex_);
    done_ = true;
    session = session_;
    counted = counted_;
  }
  if (counted) uploads_.RemoveStream();
  if (session != nullptr) {
    const bool queued = session->strand().Post(
        [self = shared_from_this(), session] { session->Detach(self->attachment_); });
    if (!queued) {
      Log(LogLevel::kWarning, "the file of an upload stays open until its next stream",
          {{"upload", session->id()}});
    }
  }
  self_.reset();
}

}  // namespace muster
