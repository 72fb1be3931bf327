// The calls that are under way, so that those of a revoked identity can be ended.
#ifndef MUSTER_SERVICES_COMMON_RPC_LIVE_CALLS_H_
#define MUSTER_SERVICES_COMMON_RPC_LIVE_CALLS_H_

#include <grpcpp/server_context.h>

#include <functional>
#include <list>
#include <memory>
#include <mutex>

#include "services/common/identity/policy.h"

namespace muster {

// Thread-safe. Must outlive its handles.
class LiveCalls {
 public:
  // Removes the call when it is destroyed. The context must outlive it.
  using Handle = std::shared_ptr<void>;

  Handle Add(const Caller& caller, grpc::CallbackServerContext* context);

  // Cancels every call whose caller `is_revoked`; returns how many.
  int CancelIf(const std::function<bool(const Caller&)>& is_revoked);

  // Cancels every call: the last step of a stop.
  int CancelAll();

 private:
  struct Entry {
    Caller caller;
    grpc::CallbackServerContext* context;
  };

  std::mutex mutex_;
  std::list<Entry> entries_;  // guarded by mutex_
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_LIVE_CALLS_H_
