// The upstream side of a stream that passes through this relay: messages are forwarded unchanged.
#ifndef MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_STREAM_H_
#define MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_STREAM_H_

#include <memory>
#include <optional>
#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/rpc/client_stream.h"
#include "services/common/upload/read_ahead_budget.h"
#include "services/relay/proxy/downstream_stream.h"
#include "services/relay/proxy/upstream_call.h"

namespace muster {

// One message is being sent upstream. One more is read ahead if the shared budget permits it. So a
// stream holds one message, and a slow upstream connection holds up its own senders only.
class UpstreamStream : public MessageSink,
                       public ClientStreamHandler<grpc::ByteBuffer, grpc::ByteBuffer>,
                       public std::enable_shared_from_this<UpstreamStream> {
 public:
  using Stream = ClientStream<grpc::ByteBuffer, grpc::ByteBuffer>;

  static std::shared_ptr<MessageSink> Start(std::shared_ptr<DownstreamStream> downstream,
                                            UpstreamCall call, const char* method,
                                            ReadAheadBudget& budget);

  UpstreamStream(std::shared_ptr<DownstreamStream> downstream, Admission::Ticket ticket,
                 ReadAheadBudget& budget)
      : downstream_(std::move(downstream)), ticket_(std::move(ticket)), budget_(budget) {}

  // MessageSink.
  void HandleMessage(grpc::ByteBuffer message) override ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleHalfClose() override ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleSent() override;
  void HandleEnd() override;

  // ClientStreamHandler.
  void OnStart(const std::shared_ptr<Stream>& stream) override;
  void OnMessage(grpc::ByteBuffer message) override { downstream_->Send(std::move(message)); }
  void OnWritable() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(const absl::Status& status, EndedBy by) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Write(grpc::ByteBuffer message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReturnPermit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<DownstreamStream> downstream_;
  const Admission::Ticket ticket_;
  ReadAheadBudget& budget_;
  std::shared_ptr<Stream> stream_;

  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<grpc::ByteBuffer> ahead_ ABSL_GUARDED_BY(mutex_);
  bool permit_ ABSL_GUARDED_BY(mutex_) = false;       // of the budget, for ahead_
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;  // by the sender
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_STREAM_H_
