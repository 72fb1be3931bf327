// An upload on its way to who is above, byte for byte as it came.
//
// One message is on its way, and one more may be read ahead if the budget that all uploads share
// has room for it: so a stream holds one message, a slow way up holds its sender, and nobody else.
#ifndef MUSTER_SERVICES_RELAY_PROXY_UPLOAD_UPWARD_H_
#define MUSTER_SERVICES_RELAY_PROXY_UPLOAD_UPWARD_H_

#include <grpcpp/support/client_callback.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "services/relay/proxy/upload_below.h"
#include "services/relay/proxy/upward_call.h"

namespace muster {

// Bytes that uploads may hold beyond one message each. Thread-safe.
class AheadBudget {
 public:
  explicit AheadBudget(int64_t bytes) : left_(bytes) {}

  bool TryTake(int64_t bytes) {
    if (left_.fetch_sub(bytes) >= bytes) return true;
    left_ += bytes;
    return false;
  }
  void Return(int64_t bytes) { left_ += bytes; }

 private:
  std::atomic<int64_t> left_;
};

// Deletes itself when both sides are done with it.
class UploadUpward : public UploadSink,
                     private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                     public std::enable_shared_from_this<UploadUpward> {
 public:
  static std::shared_ptr<UploadSink> Start(std::shared_ptr<UploadBelow> below,
                                           std::shared_ptr<UpwardCall> up, const char* method,
                                           AheadBudget& budget);

  // UploadSink.
  void Take(grpc::ByteBuffer message) override;
  void HalfClosed() override;
  void Sent() override;
  void Over() override;

 private:
  UploadUpward(std::shared_ptr<UploadBelow> below, std::shared_ptr<UpwardCall> up,
               AheadBudget& budget)
      : below_(std::move(below)), up_(std::move(up)), budget_(budget) {}

  // Of the call upward.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  void Write(grpc::ByteBuffer message);
  bool MayRead();
  void ReturnPermit();

  const std::shared_ptr<UploadBelow> below_;
  const std::shared_ptr<UpwardCall> up_;
  AheadBudget& budget_;
  std::shared_ptr<UploadUpward> self_;  // until the call upward is over
  grpc::ByteBuffer up_message_;         // on its way up
  grpc::ByteBuffer down_message_;       // read from above

  std::mutex mutex_;
  // All below are guarded by mutex_.
  bool writing_ = false;                   // up_message_ is out
  std::optional<grpc::ByteBuffer> ahead_;  // what was read meanwhile
  bool permit_ = false;                    // of the budget, for ahead_
  bool half_closed_ = false;               // the sender has said all
  bool sending_ = false;                   // an answer from above is on its way to the sender
  bool over_ = false;                      // the lower end is gone
  bool reads_ended_ = false;               // the call upward is ending: nothing may be started
};

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_PROXY_UPLOAD_UPWARD_H_
