// Server streams of a source, which returns the next message after the previous one was sent.
#ifndef MUSTER_SERVICES_COMMON_RPC_STREAM_H_
#define MUSTER_SERVICES_COMMON_RPC_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "services/common/rpc/call.h"
#include "services/common/rpc/server_stream.h"

namespace muster {

enum class Pull {
  kMessage,  // the message was filled in
  kWait,     // there is none now: call Next again after the wake function was called
  kEnd,      // the stream is complete
};

// The messages of a stream. Called on the executor, never twice at a time; may wait for the disk.
template <typename Message>
class StreamSource {
 public:
  virtual ~StreamSource() = default;
  // `message` is empty, or as Next has left it before.
  virtual absl::StatusOr<Pull> Next(Message* message) = 0;
};

// Creates the source of one call, on the executor, and authorises the call. `wake` may be kept
// and called from any thread, at any time, also after the stream has ended.
template <typename Message>
using MakeSource = absl::AnyInvocable<absl::StatusOr<std::unique_ptr<StreamSource<Message>>>(
    Call& call, std::function<void()> wake)>;

// Sends the messages of a source. The source is destroyed on the executor.
template <typename Message>
class SourceStreamHandler : public ServerStreamHandler<void, Message> {
 public:
  explicit SourceStreamHandler(MakeSource<Message> make) : make_(std::move(make)) {}

  void OnStart(const std::shared_ptr<ServerStream<Message>>& stream) override {
    stream_ = stream;
    stream->NotifyWhenWritable();
  }

  // A wake function that is called meanwhile leads to another call of this.
  void OnWritable() override {
    if (source_ == nullptr) {
      auto source = make_(stream_->call(), [weak = std::weak_ptr(stream_)] {
        if (const auto stream = weak.lock()) stream->NotifyWhenWritable();
      });
      if (!source.ok()) return stream_->End(source.status());
      source_ = *std::move(source);
    }
    Message message = stream_->TakeSent();
    const auto pull = source_->Next(&message);
    if (!pull.ok()) return stream_->End(pull.status());
    if (*pull == Pull::kEnd) return stream_->End(absl::OkStatus());
    if (*pull == Pull::kWait) return;
    stream_->Send(std::move(message));
    stream_->NotifyWhenWritable();
  }

 private:
  MakeSource<Message> make_;
  std::shared_ptr<ServerStream<Message>> stream_;
  std::unique_ptr<StreamSource<Message>> source_;
};

// The limits of streams that send a file: each may hold about 1 MiB for a reader that does not
// read.
inline constexpr StreamLimits kFileStreams = {.in_all = 1000, .of_caller = 64};
// The limits of streams that report changes.
inline constexpr StreamLimits kWatchStreams = {.in_all = 20'000, .of_caller = 64};

// Starts a stream of the messages of the source that `make` creates.
template <typename Message>
grpc::ServerWriteReactor<Message>* StartSourceStream(const RpcRuntime& runtime,
                                                     grpc::CallbackServerContext* context,
                                                     std::string_view method,
                                                     const StreamLimits& limits,
                                                     MakeSource<Message> make) {
  ServerStreamOptions options;
  options.limits = limits;
  options.on_executor = true;
  options.keep_sent = true;
  return StartServerStream<void, Message>(
      runtime, context, method, options,
      std::make_shared<SourceStreamHandler<Message>>(std::move(make)));
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_STREAM_H_
