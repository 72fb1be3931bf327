#include "services/relay/proxy/downstream_stream.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <cstdint>
#include <utility>

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

DownstreamStream::Reactor* DownstreamStream::Start(const RpcRuntime& runtime,
                                                   grpc::CallbackServerContext* context,
                                                   std::string_view method,
                                                   ServerStreamOptions options, size_t max_message,
                                                   ChooseSink choose_sink) {
  options.notify_when_sent = true;
  return StartServerStream<grpc::ByteBuffer, grpc::ByteBuffer>(
      runtime, context, method, options,
      std::make_shared<DownstreamStream>(max_message, std::move(choose_sink)));
}

void DownstreamStream::OnStart(const std::shared_ptr<Stream>& stream) {
  stream_ = stream;
  ReadNext();
}

void DownstreamStream::ReadNext() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(reading_, true)) return;
  }
  stream_->ReadNext();
}

void DownstreamStream::OnMessage(grpc::ByteBuffer message) {
  {
    MutexLock lock(mutex_);
    reading_ = false;
  }
  if (message.Length() > max_message_) {
    return End(errors::ChunkTooLarge(static_cast<int64_t>(message.Length()),
                                     static_cast<int64_t>(max_message_)));
  }
  if (sink_ == nullptr) {
    auto sink = choose_sink_(stream_->call(), message, shared_from_this());
    if (!sink.ok()) return End(sink.status());
    sink_ = *std::move(sink);
  }
  sink_->HandleMessage(std::move(message));
}

void DownstreamStream::OnHalfClose() { sink_->HandleHalfClose(); }

void DownstreamStream::OnWritable() {
  if (sink_ != nullptr) sink_->HandleSent();
}

void DownstreamStream::End(const absl::Status& status, std::optional<grpc::ByteBuffer> last) {
  if (last && status.ok()) return stream_->SendAndEnd(*std::move(last));
  stream_->End(status);
}

void DownstreamStream::OnEnd(const absl::Status&, EndedBy) {
  if (const auto sink = std::exchange(sink_, nullptr); sink != nullptr) sink->HandleEnd();
}

}  // namespace muster
