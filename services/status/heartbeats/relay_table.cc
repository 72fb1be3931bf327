#include "services/status/heartbeats/relay_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"

namespace muster {
namespace {

// Far more than any fleet has.
constexpr size_t kMaxRelays = 10'000;

absl::Duration TurnedAt(const RelayState& relay) {
  return absl::Nanoseconds(relay.turned_at.load());
}

// Returns since when a disconnected or silent relay has sent nothing.
absl::Duration AwaySince(const RelayState& relay) {
  return relay.connected ? absl::Nanoseconds(relay.received_at.load()) : TurnedAt(relay);
}

bool IsAway(const RelayState& relay, absl::Duration now) {
  return !relay.connected || relay.IsSilent(now);
}

// Returns how long the relay was absent, less how long it was present: one that comes and goes
// explains silence for no longer than one that remains absent.
absl::Duration Away(const RelayState& relay, absl::Duration now) {
  const absl::Duration present_until = IsAway(relay, now) ? AwaySince(relay) : now;
  const absl::Duration present = present_until - TurnedAt(relay);
  const absl::Duration before = absl::Nanoseconds(relay.away.load());
  return std::max(before - present, absl::ZeroDuration()) + (now - present_until);
}

}  // namespace

std::string WhyUnknown(const RelayState& relay, absl::Duration now) {
  return absl::StrCat("relay ", relay.name,
                      relay.connected ? " is connected but silent (" : " is not connected (",
                      absl::FormatDuration(absl::Trunc(now - AwaySince(relay), absl::Seconds(1))),
                      "): the state of its nodes is unknown");
}

absl::StatusOr<RelayState*> RelayTable::FindOrAdd(const std::string& name, absl::Duration now) {
  auto known = relays_.find(name);
  if (known == relays_.end()) {
    if (relays_.size() >= kMaxRelays) return errors::TooManySenders(kMaxRelays);
    known = relays_.emplace(name, std::make_unique<RelayState>(name)).first;
    known->second->turned_at = absl::ToInt64Nanoseconds(now);
  }
  return known->second.get();
}

absl::StatusOr<RelayState*> RelayTable::Find(const std::string& name, absl::Duration now) {
  MutexLock lock(mutex_);
  return FindOrAdd(name, now);
}

absl::StatusOr<RelayState*> RelayTable::Open(const std::string& name, absl::Duration now) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(RelayState* const relay, FindOrAdd(name, now));
  if (!relay->connected || relay->IsSilent(now)) Turn(*relay, now);
  relay->connected = true;
  relay->received_at = absl::ToInt64Nanoseconds(now);
  ++relay->streams;
  return relay;
}

void RelayTable::SetCertificate(const RelayState& relay, const std::string& certificate) {
  MutexLock lock(mutex_);
  certificates_[relay.name] = certificate;
}

std::string RelayTable::CertificateOf(const RelayState& relay) const {
  MutexLock lock(mutex_);
  const auto found = certificates_.find(relay.name);
  return found == certificates_.end() ? "" : found->second;
}

void RelayTable::HandleMessage(RelayState* relay, absl::Duration now, absl::Duration interval) {
  MutexLock lock(mutex_);
  if (relay->IsSilent(now)) Turn(*relay, now);
  relay->received_at = absl::ToInt64Nanoseconds(now);
  relay->interval = absl::ToInt64Nanoseconds(interval);
}

void RelayTable::Close(RelayState* relay, absl::Duration now) {
  MutexLock lock(mutex_);
  if (--relay->streams > 0) return;
  Turn(*relay, now);
  relay->connected = false;
}

// Ends a time of absence or presence. The values agree only once the caller has set `connected` or
// `received_at` too, so ExplainsSilence and Lost read them with the mutex held.
void RelayTable::Turn(RelayState& relay, absl::Duration now) {
  const absl::Duration away = std::min(Away(relay, now), options_.doubt_limit);
  relay.turned_at = absl::ToInt64Nanoseconds(now);
  relay.away = absl::ToInt64Nanoseconds(away);
}

bool RelayTable::ExplainsSilence(const RelayState& relay, absl::Duration last_seen,
                                 absl::Duration now) const {
  if (now - last_seen >= options_.doubt_limit + options_.return_grace) return false;
  MutexLock lock(mutex_);
  if (IsAway(relay, now)) return Away(relay, now) < options_.doubt_limit;
  const absl::Duration turned = TurnedAt(relay);
  return last_seen < turned && now - turned < options_.return_grace;
}

std::vector<const RelayState*> RelayTable::Lost(absl::Duration now) const {
  std::vector<const RelayState*> lost;
  MutexLock lock(mutex_);
  for (const auto& [name, relay] : relays_) {
    if (IsAway(*relay, now) && Away(*relay, now) < options_.doubt_limit) {
      lost.push_back(relay.get());
    }
  }
  return lost;
}

}  // namespace muster
