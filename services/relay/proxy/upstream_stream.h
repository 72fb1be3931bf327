// An upload on its way to who is above, byte for byte as it came.
//
// One message is on its way, and one more may be read ahead if the budget that all uploads share
// has room for it: so a stream holds one message, a slow way up holds its sender, and nobody else.
#ifndef MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_STREAM_H_
#define MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_STREAM_H_

#include <grpcpp/support/client_callback.h>

#include <memory>
#include <optional>

#include "services/common/base/mutex.h"
#include "services/common/upload/read_ahead_budget.h"
#include "services/relay/proxy/downstream_stream.h"
#include "services/relay/proxy/upstream_call.h"

namespace muster {

// Deletes itself when both sides are done with it.
class UpstreamStream : public MessageSink,
                       private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                       public std::enable_shared_from_this<UpstreamStream> {
 public:
  static std::shared_ptr<MessageSink> Start(std::shared_ptr<DownstreamStream> below,
                                            std::shared_ptr<UpstreamCall> up, const char* method,
                                            ReadAheadBudget& budget);

  // MessageSink.
  void Take(grpc::ByteBuffer message) override;
  void HalfClosed() override;
  void Sent() override;
  void Over() override;

 private:
  UpstreamStream(std::shared_ptr<DownstreamStream> below, std::shared_ptr<UpstreamCall> up,
                 ReadAheadBudget& budget)
      : below_(std::move(below)), up_(std::move(up)), budget_(budget) {}

  // Of the call upward.
  void OnReadDone(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) override;
  void OnWriteDone(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) override;
  void OnDone(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) override;

  void Write(grpc::ByteBuffer message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReturnPermit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<DownstreamStream> below_;
  const std::shared_ptr<UpstreamCall> up_;
  ReadAheadBudget& budget_;
  std::shared_ptr<UpstreamStream> self_;  // until the call upward is over
  grpc::ByteBuffer up_message_;           // on its way up
  grpc::ByteBuffer down_message_;         // read from above

  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;                   // up_message_ is out
  std::optional<grpc::ByteBuffer> ahead_ ABSL_GUARDED_BY(mutex_);  // what was read meanwhile
  bool permit_ ABSL_GUARDED_BY(mutex_) = false;                    // of the budget, for ahead_
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;               // the sender has said all
  bool sending_ ABSL_GUARDED_BY(mutex_) =
      false;                                   // an answer from above is on its way to the sender
  bool over_ ABSL_GUARDED_BY(mutex_) = false;  // the lower end is gone
  // The call upward is ending: nothing may be started.
  bool reads_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPSTREAM_STREAM_H_
