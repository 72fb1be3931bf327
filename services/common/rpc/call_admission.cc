#include "services/common/rpc/call_admission.h"

#include "services/common/base/strings.h"
#include "services/common/errors/rpc.h"

namespace muster {
namespace {

// In one period, times the limit of waiting calls.
constexpr int64_t kRefusalsOfFlood = 4;

}  // namespace

absl::Status CallAdmission::Accept(std::string_view peer, std::string_view caller,
                                   std::string_view holder, const CallLimits& limits,
                                   absl::Duration now) {
  const bool too_often = rates_.Take(holder, limits.rate, now) > absl::ZeroDuration();
  MutexLock lock(mutex_);
  BeginPeriods(now);
  Peer& entry = peers_[ToAbsl(peer)];
  entry.limit = limits.waiting_calls;
  const auto forwarded = entry.forwarded.find(ToAbsl(caller));
  const bool caller_has_too_many = forwarded != entry.forwarded.end() &&
                                   forwarded->second.sum() >= limits.waiting_forwarded_calls;
  const bool too_many = entry.waiting.sum() >= limits.waiting_calls;
  if (!too_often && !too_many && !caller_has_too_many) {
    ++entry.waiting.current;
    if (caller != peer) ++entry.forwarded[ToAbsl(caller)].current;
    return absl::OkStatus();
  }
  // A connection with forwarded calls has other callers, who did not cause the refusal.
  if (caller == peer) ++entry.refused;
  if (too_often) return errors::TooManyCalls(static_cast<int64_t>(limits.rate.per_second));
  return errors::TooManyWaitingCalls(too_many ? limits.waiting_calls
                                              : limits.waiting_forwarded_calls);
}

bool CallAdmission::Start(std::string_view peer, std::string_view caller, absl::Duration now) {
  MutexLock lock(mutex_);
  BeginPeriods(now);
  const auto it = peers_.find(ToAbsl(peer));
  if (it == peers_.end()) return false;
  Peer& entry = it->second;
  entry.waiting.Remove();
  if (const auto forwarded = entry.forwarded.find(ToAbsl(caller));
      forwarded != entry.forwarded.end()) {
    forwarded->second.Remove();
    if (forwarded->second.sum() == 0) entry.forwarded.erase(forwarded);
  }
  if (entry.refused < kRefusalsOfFlood * entry.limit) return false;
  entry.refused = 0;
  return true;
}

int64_t CallAdmission::waiting(std::string_view peer) const {
  MutexLock lock(mutex_);
  const auto it = peers_.find(ToAbsl(peer));
  return it == peers_.end() ? 0 : it->second.waiting.sum();
}

void CallAdmission::Waiting::Remove() {
  if (earlier > 0) {
    --earlier;
  } else if (current > 0) {
    --current;
  }
}

void CallAdmission::Waiting::BeginPeriod(bool all_forgotten) {
  earlier = all_forgotten ? 0 : current;
  current = 0;
}

void CallAdmission::BeginPeriods(absl::Duration now) {
  if (now - period_ < kPeriod) return;
  const bool all_forgotten = now - period_ >= 2 * kPeriod;
  period_ = now;
  absl::erase_if(peers_, [all_forgotten](auto& entry) {
    Peer& peer = entry.second;
    peer.waiting.BeginPeriod(all_forgotten);
    peer.refused = 0;
    absl::erase_if(peer.forwarded, [all_forgotten](auto& of_caller) {
      of_caller.second.BeginPeriod(all_forgotten);
      return of_caller.second.sum() == 0;
    });
    return peer.waiting.sum() == 0;
  });
}

}  // namespace muster
