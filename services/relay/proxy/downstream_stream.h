// The downstream side of a stream that passes through this relay. Its messages go into a sink:
// upstream (upstream_stream.h) or into the spool (upload_into_spool.h).
//
// Messages stay serialised. Only the function that chooses the sink parses the first one.
#ifndef MUSTER_SERVICES_RELAY_PROXY_DOWNSTREAM_STREAM_H_
#define MUSTER_SERVICES_RELAY_PROXY_DOWNSTREAM_STREAM_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/server_stream.h"

namespace muster {

class DownstreamStream;

// Receives the messages of a stream. The methods are called one at a time, on gRPC's threads, and
// must not block.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  // The next message is read when the sink calls DownstreamStream::ReadNext.
  virtual void HandleMessage(grpc::ByteBuffer message) = 0;
  // The sender sends no more messages.
  virtual void HandleHalfClose() = 0;
  // The message of DownstreamStream::Send has been sent.
  virtual void HandleSent() = 0;
  // The call is over, and its context does not exist any more.
  virtual void HandleEnd() = 0;
};

// Thread-safe.
class DownstreamStream : public ServerStreamHandler<grpc::ByteBuffer, grpc::ByteBuffer>,
                         public std::enable_shared_from_this<DownstreamStream> {
 public:
  using Stream = ServerStream<grpc::ByteBuffer>;
  using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

  // Returns the sink of a stream, or the error that rejects the stream. Authorises `call`. Called
  // on gRPC's threads.
  using ChooseSink = std::function<absl::StatusOr<std::shared_ptr<MessageSink>>(
      Call& call, const grpc::ByteBuffer& first,
      const std::shared_ptr<DownstreamStream>& downstream)>;

  static Reactor* Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                        std::string_view method, ServerStreamOptions options, size_t max_message,
                        ChooseSink choose_sink);

  DownstreamStream(size_t max_message, ChooseSink choose_sink)
      : max_message_(max_message), choose_sink_(std::move(choose_sink)) {}

  // For the sink.
  grpc::CallbackServerContext* context() const { return stream_->context(); }
  // Reads one more message. Has no effect while a message is being read.
  void ReadNext() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends a message, unless the previous one is still being sent: HandleSent follows.
  Sent Send(grpc::ByteBuffer message) { return stream_->Send(std::move(message)); }
  // Ends the stream; `last` is sent before an OK.
  void End(const absl::Status& status, std::optional<grpc::ByteBuffer> last = std::nullopt);

  // ServerStreamHandler.
  void OnStart(const std::shared_ptr<Stream>& stream) override;
  void OnMessage(grpc::ByteBuffer message) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnHalfClose() override;
  void OnWritable() override;
  void OnEnd(const absl::Status& status, EndedBy by) override;

 private:
  const size_t max_message_;
  const ChooseSink choose_sink_;
  std::shared_ptr<Stream> stream_;
  std::shared_ptr<MessageSink> sink_;  // of the callbacks; set by the first message

  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
};

// Convert between messages and their serialised form.
bool Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);
grpc::ByteBuffer Serialize(const google::protobuf::Message& message);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_DOWNSTREAM_STREAM_H_
