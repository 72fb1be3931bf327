#include "services/common/rpc/call_admission.h"

#include "services/common/base/strings.h"
#include "services/common/errors/rpc.h"

namespace muster {
namespace {

// In one period, times the limit of waiting calls.
constexpr int64_t kRefusalsOfFlood = 4;

}  // namespace

absl::Status CallAdmission::Accept(std::string_view peer, std::string_view caller,
                                   const CallLimits& limits, absl::Duration now) {
  const bool too_often = rates_.Take(caller, limits.rate, now) > absl::ZeroDuration();
  MutexLock lock(mutex_);
  BeginPeriods(now);
  Peer& entry = peers_[ToAbsl(peer)];
  entry.limit = limits.waiting_calls;
  const bool too_many = entry.current + entry.earlier >= limits.waiting_calls;
  if (!too_often && !too_many) {
    ++entry.current;
    return absl::OkStatus();
  }
  // A connection with forwarded calls has other callers, who did not cause the refusal.
  if (caller == peer) ++entry.refused;
  return too_often ? errors::TooManyCalls(static_cast<int64_t>(limits.rate.per_second))
                   : errors::TooManyWaitingCalls(limits.waiting_calls);
}

bool CallAdmission::Start(std::string_view peer, absl::Duration now) {
  MutexLock lock(mutex_);
  BeginPeriods(now);
  const auto it = peers_.find(ToAbsl(peer));
  if (it == peers_.end()) return false;
  Peer& entry = it->second;
  if (entry.earlier > 0) {
    --entry.earlier;
  } else if (entry.current > 0) {
    --entry.current;
  }
  if (entry.refused < kRefusalsOfFlood * entry.limit) return false;
  entry.refused = 0;
  return true;
}

int64_t CallAdmission::waiting(std::string_view peer) const {
  MutexLock lock(mutex_);
  const auto it = peers_.find(ToAbsl(peer));
  return it == peers_.end() ? 0 : it->second.current + it->second.earlier;
}

void CallAdmission::BeginPeriods(absl::Duration now) {
  if (now - period_ < kPeriod) return;
  const bool all_forgotten = now - period_ >= 2 * kPeriod;
  period_ = now;
  absl::erase_if(peers_, [all_forgotten](auto& entry) {
    Peer& peer = entry.second;
    peer.earlier = all_forgotten ? 0 : peer.current;
    peer.current = 0;
    peer.refused = 0;
    return peer.earlier == 0;
  });
}

}  // namespace muster
