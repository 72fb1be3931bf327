// The upstream side of a stream that passes through this relay: messages are forwarded unchanged.
#ifndef MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_STREAM_H_
#define MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_STREAM_H_

#include <memory>
#include <optional>
#include <utility>

#include "services/common/base/mutex.h"
#include "services/common/rpc/client_stream.h"
#include "services/common/rpc/open_streams.h"
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

  UpstreamStream(std::shared_ptr<DownstreamStream> downstream, ReadAheadBudget& budget)
      : downstream_(std::move(downstream)), budget_(budget) {}

  // Starts the upstream call, before the first message. `counted` counts the downstream side until
  // its end; `ownership` is kept as long as this.
  void Start(UpstreamCall call, const char* method, OpenStreams::Ticket counted = {},
             std::shared_ptr<void> ownership = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends both sides with `why`. The stream is no longer counted, although the call of a lost
  // connection may exist for a minute longer. Any thread.
  void Abandon(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // MessageSink.
  void HandleMessage(grpc::ByteBuffer message) override ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleHalfClose() override ABSL_LOCKS_EXCLUDED(mutex_);
  void HandleSent() override;
  void HandleEnd() override ABSL_LOCKS_EXCLUDED(mutex_);

  // ClientStreamHandler.
  void OnStart(const std::shared_ptr<Stream>& stream) override;
  void OnMessage(grpc::ByteBuffer message) override { downstream_->Send(std::move(message)); }
  void OnWritable() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnEnd(const absl::Status& status, EndedBy by) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Write(grpc::ByteBuffer message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReturnPermit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StopCounting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<DownstreamStream> downstream_;
  ReadAheadBudget& budget_;
  std::shared_ptr<Stream> stream_;  // set by Start

  Mutex mutex_;
  Admission::Ticket ticket_ ABSL_GUARDED_BY(mutex_);  // set by Start
  OpenStreams::Ticket counted_ ABSL_GUARDED_BY(mutex_);
  // Destroyed before the ticket, for which the owner of both waits.
  std::shared_ptr<void> ownership_ ABSL_GUARDED_BY(mutex_);
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<grpc::ByteBuffer> ahead_ ABSL_GUARDED_BY(mutex_);
  bool permit_ ABSL_GUARDED_BY(mutex_) = false;       // of the budget, for ahead_
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;  // by the sender
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_STREAM_H_
