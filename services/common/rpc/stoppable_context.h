// The context of a unary call that a stop token ends.
#ifndef MUSTER_SERVICES_COMMON_RPC_STOPPABLE_CONTEXT_H_
#define MUSTER_SERVICES_COMMON_RPC_STOPPABLE_CONTEXT_H_

#include <grpcpp/client_context.h>

#include <functional>
#include <stop_token>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace muster {

// Cancels the call when a stop is requested, and ends it at a deadline. For one call. Thread-safe.
class StoppableContext {
 public:
  explicit StoppableContext(const std::stop_token& stop, absl::Duration limit = absl::Minutes(1))
      : cancel_(stop, [this] { context_.TryCancel(); }) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + limit));
  }

  grpc::ClientContext* get() { return &context_; }

 private:
  grpc::ClientContext context_;
  const std::stop_callback<std::function<void()>> cancel_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_STOPPABLE_CONTEXT_H_
