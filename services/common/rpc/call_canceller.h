// The calls in progress, until their peers have taken the answers: cancels those of revoked
// identities and of peers that stopped reading.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALL_CANCELLER_H_
#define MUSTER_SERVICES_COMMON_RPC_CALL_CANCELLER_H_

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/rpc_authorization.h"

namespace muster {

// Returns the caller itself, without the gateway or relay that forwards its call and the
// certificate of their connection.
Caller WithoutForwarder(Caller caller);

// A stream that can end with a status of this side. Thread-safe.
class EndableStream {
 public:
  virtual ~EndableStream() = default;
  // Ends the stream with `why`, or cancels its call if the peer does not take that soon.
  virtual void EndSoon(const absl::Status& why) = 0;
};

// Thread-safe. Must outlive its handles.
class CallCanceller {
 public:
  // A call in progress. Thread-safe.
  class Entry {
   public:
    explicit Entry(std::shared_ptr<const Caller> caller) : caller_(std::move(caller)) {}

    // Between these two a message is being sent to the peer.
    void BeginWrite(absl::Duration now) { writing_since_ = absl::ToInt64Nanoseconds(now); }
    // The exchange orders the two writes for race detectors, which do not see the order that gRPC
    // guarantees.
    void EndWrite() { writing_since_.exchange(0); }

   private:
    friend class CallCanceller;
    const std::shared_ptr<const Caller> caller_;
    std::weak_ptr<EndableStream> stream_;     // with mutex_
    std::atomic<int64_t> writing_since_ = 0;  // monotonic nanoseconds; 0: nothing is
  };

  // Removes the call when the last copy is destroyed. The context must outlive it, or be forgotten.
  using Handle = std::shared_ptr<Entry>;

  Handle Add(std::shared_ptr<const Caller> caller, grpc::CallbackServerContext* context);

  // The call is that of `stream`.
  void SetStream(Entry& entry, std::weak_ptr<EndableStream> stream);

  // The context of a call is about to be destroyed: the call is not cancelled any more, but
  // AwaitNone waits for it.
  void ForgetContext(Entry& entry);

  // Cancels every call whose caller `is_revoked`; returns how many.
  int CancelIf(const std::function<bool(const Caller&)>& is_revoked);

  // Ends every call whose caller `is_revoked`: streams with `why`, others are cancelled. A stream
  // whose forwarder is revoked, and not its caller, is cancelled too: `why` would be taken for the
  // caller's.
  void EndIf(const std::function<bool(const Caller&)>& is_revoked, const absl::Status& why);

  // Cancels every call whose peer has not taken a message for `limit`; returns how many.
  int CancelStuck(absl::Duration now, absl::Duration limit);

  // Cancels every call: the last step of a stop.
  int CancelAll();

  // Waits until the last call has left. Everything that calls did happens before this returns.
  void AwaitNone();

 private:
  int CancelWhere(const std::function<bool(const Entry&)>& condition) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  CondVar none_;
  // Null: the context is forgotten.
  absl::flat_hash_map<const Entry*, grpc::CallbackServerContext*> contexts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALL_CANCELLER_H_
