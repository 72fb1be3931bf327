#include "services/relay/proxy/upstream_stream.h"

#include "services/common/rpc/limits.h"

namespace muster {

void UpstreamStream::Start(UpstreamCall call, const char* method, OpenStreams::Ticket counted,
                           std::shared_ptr<void> ownership) {
  {
    MutexLock lock(mutex_);
    ticket_ = std::move(call.ticket);
    counted_ = std::move(counted);
    ownership_ = std::move(ownership);
    if (abandoned_) StopCounting();
  }
  StreamOptions options;
  options.first_within = absl::ZeroDuration();  // the sender's own deadline applies
  options.notify_when_sent = true;
  Stream::Start(call.channel, method, options, shared_from_this(), {}, std::move(call.context));
}

void UpstreamStream::StopCounting() {
  if (ticket_ != nullptr) Admission::Release(ticket_);
  counted_ = OpenStreams::Ticket();
}

// The end of the downstream side cancels the upstream side: HandleEnd.
void UpstreamStream::Abandon(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    abandoned_ = true;
    StopCounting();
  }
  downstream_->End(why);
}

void UpstreamStream::OnStart(const std::shared_ptr<Stream>& stream) {
  stream_ = stream;
  stream->ReadNext();
}

void UpstreamStream::HandleMessage(grpc::ByteBuffer message) {
  bool read = false;
  {
    MutexLock lock(mutex_);
    if (writing_) {
      ahead_ = std::move(message);
    } else {
      Write(std::move(message));
      read = MayRead();
    }
  }
  if (read) downstream_->ReadNext();
}

void UpstreamStream::Write(grpc::ByteBuffer message) {
  writing_ = true;
  stream_->Send(std::move(message));
}

// Returns whether one more message of the sender may be read.
bool UpstreamStream::MayRead() {
  if (half_closed_ || ahead_ || ended_) return false;
  if (!writing_ || permit_) return true;
  permit_ = budget_.TryReserve(kChunkMaxLarge);
  return permit_;
}

void UpstreamStream::ReturnPermit() {
  if (std::exchange(permit_, false)) budget_.Release(kChunkMaxLarge);
}

// The message has been sent.
void UpstreamStream::OnWritable() {
  bool read = false;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    if (ahead_) {
      Write(*std::exchange(ahead_, std::nullopt));
      if (half_closed_) stream_->HalfClose();
    }
    // The message that was read ahead is now the one that needs no permit.
    ReturnPermit();
    read = MayRead();
  }
  if (read) downstream_->ReadNext();
}

void UpstreamStream::HandleHalfClose() {
  MutexLock lock(mutex_);
  half_closed_ = true;
  if (!ahead_) stream_->HalfClose();
}

// The previous message reached the sender: the next one may be received.
void UpstreamStream::HandleSent() { stream_->ReadNext(); }

void UpstreamStream::HandleEnd() {
  {
    MutexLock lock(mutex_);
    counted_ = OpenStreams::Ticket();
  }
  stream_->Cancel(absl::CancelledError("the downstream call has ended"));
}

void UpstreamStream::OnEnd(const absl::Status& status, EndedBy) {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    ahead_.reset();
    ReturnPermit();
  }
  downstream_->End(FromUpstream(status));
}

}  // namespace muster
