// The state of one stream at the client, without gRPC: see client_stream.h.
#ifndef MUSTER_SERVICES_COMMON_RPC_CLIENT_STREAM_CORE_H_
#define MUSTER_SERVICES_COMMON_RPC_CLIENT_STREAM_CORE_H_

#include <optional>

#include "absl/status/status.h"
#include "services/common/rpc/stream_core.h"

namespace muster {

// A StreamCore that the server ends with a status. Thread-safe.
//
// The end is noticed by a read that fails. A handler that stops reading notices the end only when
// it reads again, or cancels. A write that fails stops the writes alone, as messages of the server
// may still arrive before its status.
//
// A read fails also if the bytes are no message. The server may then leave the call open: after
// StreamOptions::end_within this side ends it with UNREADABLE_ANSWER.
class ClientStreamCore : public StreamCore {
 public:
  // Sends what is queued, and nothing after it.
  void HalfClose();

  // Ends the call immediately; no callback but CallEnded is called any more. The stream's status is
  // `why`, unless the server has ended the call before: with an error, or after the last read.
  void Cancel(const absl::Status& why);

 protected:
  using StreamCore::StreamCore;

  // Calls HandleEndLate after StreamOptions::end_within, unless the call is over before.
  virtual void AwaitEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  void HandleEndLate();

  // The call is over.
  void HandleDone(const absl::Status& status);

  virtual void StartHalfClosing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

 private:
  // Starts nothing more.
  void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // StreamCore.
  void Fail(const absl::Status& why) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReadsEnded() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteFailed() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}
  void LastQueued() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { half_close_ = true; }
  bool Settle() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::optional<absl::Status> why_ ABSL_GUARDED_BY(mutex_);  // of this side
  bool cancelled_late_ ABSL_GUARDED_BY(mutex_) = false;      // after the last read
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CLIENT_STREAM_CORE_H_
