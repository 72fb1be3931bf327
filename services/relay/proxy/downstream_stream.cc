#include "services/relay/proxy/downstream_stream.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/errors/results.h"

namespace muster {

bool Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  grpc::ByteBuffer copy = bytes;  // of references
  return grpc::SerializationTraits<google::protobuf::Message>::Deserialize(&copy, message).ok();
}

grpc::ByteBuffer Serialize(const google::protobuf::Message& message) {
  grpc::ByteBuffer bytes;
  bool own = false;
  grpc::SerializationTraits<google::protobuf::Message>::Serialize(message, &bytes, &own);
  return bytes;
}

DownstreamStream* DownstreamStream::Start(const RpcRuntime& runtime,
                                          grpc::CallbackServerContext* context,
                                          std::string_view method, size_t max_message,
                                          Choose choose) {
  std::shared_ptr<DownstreamStream> below(
      new DownstreamStream(runtime, context, method, max_message, std::move(choose)));
  below->self_ = below;
  if (!below->call_.caller_status().ok()) {
    below->End(below->call_.caller_status());
  } else {
    below->ReadNext();
  }
  return below.get();
}

DownstreamStream::DownstreamStream(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                   std::string_view method, size_t max_message, Choose choose)
    : context_(context),
      call_(runtime, context, method),
      max_message_(max_message),
      choose_(std::move(choose)) {}

void DownstreamStream::ReadNext() {
  MutexLock lock(mutex_);
  if (reading_ || ended_ || end_) return;
  reading_ = true;
  StartRead(&request_);
}

void DownstreamStream::OnReadDone(bool ok) {
  std::shared_ptr<MessageSink> sink;
  {
    MutexLock lock(mutex_);
    reading_ = false;
    if (ended_ || end_) return;
    sink = sink_;
  }
  if (!ok) {
    return sink == nullptr ? End(errors::InvalidChunk("the stream ended before its start"))
                           : sink->HalfClosed();
  }
  if (request_.Length() > max_message_) {
    return End(errors::ChunkTooLarge(static_cast<int64_t>(request_.Length()),
                                     static_cast<int64_t>(max_message_)));
  }
  if (sink == nullptr) return Begin();
  grpc::ByteBuffer message;
  message.Swap(&request_);
  sink->Take(std::move(message));
}

void DownstreamStream::Begin() {
  auto chosen = choose_(call_, request_, shared_from_this());
  if (!chosen.ok()) return End(chosen.status());
  bool over = false;
  {
    MutexLock lock(mutex_);
    over = ended_ || end_;
    if (!over) sink_ = *chosen;
  }
  if (over) return (*chosen)->Over();
  grpc::ByteBuffer message;
  message.Swap(&request_);
  (*chosen)->Take(std::move(message));
}

void DownstreamStream::Send(grpc::ByteBuffer message) {
  MutexLock lock(mutex_);
  if (ended_ || end_) return;
  response_.Swap(&message);
  writing_ = true;
  call_.BeginWrite();
  StartWrite(&response_);
}

void DownstreamStream::OnWriteDone(bool ok) {
  call_.EndWrite();
  MutexLock lock(mutex_);
  writing_ = false;
  if (ended_) return;
  if (end_) {
    const Ending ending = MarkEnded();
    lock.Unlock();
    return Finish(ending);
  }
  const auto sink = sink_;
  lock.Unlock();
  if (!ok) return End(absl::CancelledError("the sender went away"));
  if (sink != nullptr) sink->Sent();
}

void DownstreamStream::OnCancel() { End(absl::CancelledError("the call was cancelled")); }

void DownstreamStream::End(const absl::Status& status, std::optional<grpc::ByteBuffer> last) {
  MutexLock lock(mutex_);
  if (ended_ || end_) return;
  end_ = status;
  last_ = std::move(last);
  if (writing_) return;
  const Ending ending = MarkEnded();
  lock.Unlock();
  Finish(ending);
}

// Returns what Finish has to be called with once the mutex is released.
DownstreamStream::Ending DownstreamStream::MarkEnded() {
  ended_ = true;
  Ending ending{call_.Final(*end_)};
  if (last_ && ending.status.ok()) {
    response_.Swap(&*last_);
    ending.with_message = true;
  }
  return ending;
}

void DownstreamStream::Finish(const Ending& ending) {
  if (ending.with_message) {
    return StartWriteAndFinish(&response_, grpc::WriteOptions(), ending.status);
  }
  ServerBidiReactor::Finish(ending.status);
}

void DownstreamStream::OnDone() {
  std::shared_ptr<MessageSink> sink;
  {
    MutexLock lock(mutex_);
    sink = std::exchange(sink_, nullptr);
  }
  if (sink != nullptr) sink->Over();
  self_.reset();
}

}  // namespace muster
