// The calls of one connection that the server has not ended yet.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALL_BACKLOG_H_
#define MUSTER_SERVICES_COMMON_RPC_CALL_BACKLOG_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "services/common/base/mutex.h"

namespace muster {

// A client that resets a call may begin another, although the server still works on the first: so
// HTTP/2's limit of open streams does not bound that work (CVE-2023-44487). This class counts the
// calls until the server has destroyed them. Thread-safe.
class CallBacklog {
 public:
  // The calls of one connection. A correct client has at most half as many:
  // kMaxStreamsPerConnection.
  static constexpr int kMaxCalls = 2048;
  // Calls of one connection that were reset and still exist, unless it forwards the calls of many:
  // an ordinary client resets few at a time, and each costs as much as another call.
  static constexpr int kMaxReset = 128;
  // Calls of all connections that were reset and still exist. If there are more, connections with
  // more than a few of them are closed: many may have a few after a failure of the network.
  static constexpr int kMaxResetInAll = 4096;
  static constexpr int kFewReset = 32;

  // The number of calls of all connections that were reset and still exist.
  using Total = std::atomic<int>;

  // `total` outlives the object.
  explicit CallBacklog(Total& total) : total_(total) {}
  ~CallBacklog();

  CallBacklog(const CallBacklog&) = delete;
  CallBacklog& operator=(const CallBacklog&) = delete;

  // A call exists, or no longer.
  void Add() ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove() ABSL_LOCKS_EXCLUDED(mutex_);

  // The client begins and resets calls. Returns whether it may not: then the connection has to be
  // closed. `forwards`: it is a relay or a service.
  bool IsExceeded(int begun, int reset, bool forwards) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void SetReset(int reset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Total& total_;
  Mutex mutex_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  // About how many of these were reset: which call is removed is not known, so each removal counts.
  int reset_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALL_BACKLOG_H_
