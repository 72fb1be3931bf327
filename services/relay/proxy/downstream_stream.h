// The lower end of an upload that comes through this relay: what the sender says, message by
// message, goes into a sink: upward (upload_upward.h) or into the spool (upload_into_spool.h).
//
// Messages stay as they came off the wire; only the first is looked into, by who chooses the sink.
// Any other stream that is passed on as it is goes the same upstream.
#ifndef MUSTER_SERVICES_RELAY_PROXY_DOWNSTREAM_STREAM_H_
#define MUSTER_SERVICES_RELAY_PROXY_DOWNSTREAM_STREAM_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "muster/v1/results.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/call.h"

namespace muster {

class DownstreamStream;

// Where the messages go. Its methods are called one at a time, on gRPC's threads, and must not
// wait.
class MessageSink {
 public:
  virtual ~MessageSink() = default;
  // One message. The next one is read when the sink says so (DownstreamStream::ReadNext).
  virtual void Take(grpc::ByteBuffer message) = 0;
  // The sender says nothing more.
  virtual void HalfClosed() = 0;
  // What was sent by DownstreamStream::Send has gone out.
  virtual void Sent() = 0;
  // The call is over: nothing of it may be used any more.
  virtual void Over() = 0;
};

// Deletes itself when gRPC is done with it and its sink has let go. Thread-safe.
class DownstreamStream : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                         public std::enable_shared_from_this<DownstreamStream> {
 public:
  // Gives the sink for an upload, or refuses it; on gRPC's threads. `call` is authorised by it.
  using Choose = std::function<absl::StatusOr<std::shared_ptr<MessageSink>>(
      Call& call, const grpc::ByteBuffer& first, const std::shared_ptr<DownstreamStream>& below)>;

  static DownstreamStream* Start(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                                 std::string_view method, size_t max_message, Choose choose);

  // Of the sink.
  grpc::CallbackServerContext* context() const { return context_; }
  void ReadNext();
  // At most one message at a time.
  void Send(grpc::ByteBuffer message);
  // The last word; `last` goes before an OK. What was said before is finished first.
  void End(const absl::Status& status, std::optional<grpc::ByteBuffer> last = std::nullopt);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  DownstreamStream(const RpcRuntime& runtime, grpc::CallbackServerContext* context,
                   std::string_view method, size_t max_message, Choose choose);

  // How a stream ends.
  struct Ending {
    grpc::Status status;
    bool with_message = false;  // response_ goes before it
  };

  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  Ending MarkEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(const Ending& ending);

  grpc::CallbackServerContext* const context_;
  Call call_;
  const size_t max_message_;
  const Choose choose_;
  std::shared_ptr<DownstreamStream> self_;  // until OnDone
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;

  Mutex mutex_;
  std::shared_ptr<MessageSink> sink_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // to end with once no write is out
  std::optional<grpc::ByteBuffer> last_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// Between messages and what is on the wire.
bool Parse(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);
grpc::ByteBuffer Serialize(const google::protobuf::Message& message);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_DOWNSTREAM_STREAM_H_
