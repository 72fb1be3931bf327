#include "services/relay/proxy/upstream_stream.h"

#include <utility>

#include "services/common/rpc/limits.h"

namespace muster {

std::shared_ptr<MessageSink> UpstreamStream::Start(std::shared_ptr<DownstreamStream> below,
                                                   std::shared_ptr<UpstreamCall> up,
                                                   const char* method, ReadAheadBudget& budget) {
  std::shared_ptr<UpstreamStream> upload(
      new UpstreamStream(std::move(below), std::move(up), budget));
  upload->self_ = upload;
  grpc::GenericStub stub(upload->up_->channel);
  stub.PrepareBidiStreamingCall(upload->up_->context.get(), method, {}, upload.get());
  // Both reads and writes are begun from the lower side's callbacks.
  upload->AddHold();
  upload->StartRead(&upload->down_message_);
  upload->StartCall();
  return upload;
}

void UpstreamStream::Take(grpc::ByteBuffer message) {
  bool read = false;
  {
    MutexLock lock(mutex_);
    if (reads_ended_) return;
    if (writing_) {
      ahead_ = std::move(message);
    } else {
      Write(std::move(message));
      read = MayRead();
    }
  }
  if (read) below_->ReadNext();
}

void UpstreamStream::Write(grpc::ByteBuffer message) {
  up_message_.Swap(&message);
  writing_ = true;
  StartWrite(&up_message_);
}

// Whether another message may be read from below.
bool UpstreamStream::MayRead() {
  if (half_closed_ || ahead_) return false;
  if (!writing_ || permit_) return true;
  permit_ = budget_.TryReserve(kChunkMaxLarge);
  return permit_;
}

void UpstreamStream::ReturnPermit() {
  if (std::exchange(permit_, false)) budget_.Release(kChunkMaxLarge);
}

void UpstreamStream::OnWriteDone(bool ok) {
  bool read = false;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    // A write that failed ends the call: its status says why.
    if (!ok || reads_ended_) return;
    if (ahead_) {
      Write(*std::exchange(ahead_, std::nullopt));
      // What was read ahead has taken the place of what needs no permit.
      ReturnPermit();
    } else if (half_closed_) {
      StartWritesDone();
      return;
    } else {
      ReturnPermit();
    }
    read = MayRead();
  }
  if (read) below_->ReadNext();
}

void UpstreamStream::HalfClosed() {
  MutexLock lock(mutex_);
  // A read that was asked for just before the end ends again.
  if (std::exchange(half_closed_, true)) return;
  if (!writing_ && !reads_ended_) StartWritesDone();
}

void UpstreamStream::OnReadDone(bool ok) {
  {
    MutexLock lock(mutex_);
    reads_ended_ = !ok;
    // Nobody listens below any more: only the end is waited for.
    if (ok && over_) return StartRead(&down_message_);
    sending_ = ok;
  }
  if (!ok) return RemoveHold();
  grpc::ByteBuffer message;
  message.Swap(&down_message_);
  below_->Send(std::move(message));
}

// The sender has taken what was sent: the next answer may come.
void UpstreamStream::Sent() {
  MutexLock lock(mutex_);
  if (std::exchange(sending_, false)) StartRead(&down_message_);
}

void UpstreamStream::Over() {
  up_->context->TryCancel();
  MutexLock lock(mutex_);
  over_ = true;
  if (std::exchange(sending_, false)) StartRead(&down_message_);
}

void UpstreamStream::OnDone(const grpc::Status& status) {
  {
    MutexLock lock(mutex_);
    ReturnPermit();
  }
  below_->End(FromUpstream(status));
  self_.reset();
}

}  // namespace muster
