// The state of one stream at the server, without gRPC: see server_stream.h.
#ifndef MUSTER_SERVICES_COMMON_RPC_SERVER_STREAM_CORE_H_
#define MUSTER_SERVICES_COMMON_RPC_SERVER_STREAM_CORE_H_

#include <memory>

#include "absl/status/status.h"
#include "services/common/rpc/stream_core.h"

namespace muster {

// The fate of queued messages when a stream is ended.
enum class Waiting { kSend, kDrop };

// A StreamCore that this side ends with a status. Thread-safe.
//
// The call is finished when no write is out and no callback runs or is due, so what belongs to the
// call, as its context, may be used in every callback but CallEnded. A message that was read is
// delivered even if the peer has cancelled meanwhile; after End or Cancel no callback but CallEnded
// is called.
class ServerStreamCore : public StreamCore {
 public:
  // Ends the stream. The first End counts. A message that is being sent is always waited for:
  // CallCanceller::CancelStuck cancels the call if the peer does not take it.
  void End(const absl::Status& status, Waiting waiting = Waiting::kSend);

  // Ends the stream immediately: messages are dropped. If one is being sent, the call is cancelled,
  // and the peer sees CANCELLED instead of `status`. Also after End.
  void Cancel(const absl::Status& status);

  // Cancels the call if it has not ended: the peer does not take the status of End or Cancel.
  void Abort();

 protected:
  using StreamCore::StreamCore;

  // The peer has cancelled the call, or the connection is lost.
  void HandleCancel();

  // Finishes the call; before an OK `last` is sent, which may be null.
  virtual void FinishCall(const absl::Status& status, std::unique_ptr<OutMessage> last) = 0;

 private:
  void SetEnd(const absl::Status& status, EndedBy by) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // StreamCore.
  void CloseCall() override;
  void Fail(const absl::Status& why) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadsEnded() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteFailed() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LastQueued() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HoldsLast() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Settle() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The last message of the queue goes out with the status.
  bool last_queued_ ABSL_GUARDED_BY(mutex_) = false;
  // That message, from Settle to CloseCall.
  std::unique_ptr<OutMessage> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_SERVER_STREAM_CORE_H_
