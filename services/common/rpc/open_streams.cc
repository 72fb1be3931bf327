#include "services/common/rpc/open_streams.h"

#include "services/common/errors/rpc.h"

namespace muster {
namespace {

constexpr size_t kMaxMethods = 64;

}  // namespace

OpenStreams::OpenStreams(Metrics& metrics)
    : gauge_(metrics.AddGauges("muster_rpc_open_streams",
                               "Streams that have had their first message.", {"method"},
                               kMaxMethods)) {}

OpenStreams::Ticket& OpenStreams::Ticket::operator=(Ticket&& other) noexcept {
  if (this == &other) return *this;
  Release();
  streams_ = std::exchange(other.streams_, nullptr);
  method_ = std::move(other.method_);
  caller_ = std::move(other.caller_);
  return *this;
}

void OpenStreams::Ticket::Release() {
  if (streams_ != nullptr) std::exchange(streams_, nullptr)->Leave(method_, caller_);
}

absl::StatusOr<OpenStreams::Ticket> OpenStreams::Enter(std::string_view method,
                                                       std::string_view caller,
                                                       const StreamLimits& limits) {
  Ticket ticket;
  ticket.method_ = method;
  const std::string name(method);
  if (limits.of_caller > 0) ticket.caller_ = std::string(caller);
  {
    MutexLock lock(mutex_);
    int64_t& all = of_method_[name];
    if (limits.in_all > 0 && all >= limits.in_all) {
      return errors::TooManyStreams(method, limits.in_all);
    }
    if (!ticket.caller_.empty()) {
      int64_t& own = of_caller_[Key(name, ticket.caller_)];
      if (own >= limits.of_caller) return errors::TooManyStreamsOfCaller(method, limits.of_caller);
      ++own;
    }
    ++all;
    ticket.streams_ = this;
  }
  gauge_.With({name}).Add(1);
  return ticket;
}

void OpenStreams::Leave(std::string_view method, const std::string& caller) {
  const std::string name(method);
  {
    MutexLock lock(mutex_);
    --of_method_[name];
    if (!caller.empty()) {
      const auto own = of_caller_.find(Key(name, caller));
      if (--own->second == 0) of_caller_.erase(own);
    }
  }
  gauge_.With({name}).Add(-1);
}

int64_t OpenStreams::Count(std::string_view method) const {
  MutexLock lock(mutex_);
  const auto it = of_method_.find(std::string(method));
  return it == of_method_.end() ? 0 : it->second;
}

}  // namespace muster
