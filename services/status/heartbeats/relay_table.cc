#include "services/status/heartbeats/relay_table.h"

#include "absl/strings/str_cat.h"
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

}  // namespace

std::string WhyUnknown(const RelayState& relay, absl::Duration now) {
  return absl::StrCat("relay ", relay.name,
                      relay.connected ? " is connected but silent (" : " is not connected (",
                      absl::FormatDuration(absl::Trunc(now - AwaySince(relay), absl::Seconds(1))),
                      "): the state of its nodes is unknown");
}

absl::StatusOr<RelayState*> RelayTable::Open(const std::string& name, absl::Duration now) {
  MutexLock lock(mutex_);
  auto known = relays_.find(name);
  if (known == relays_.end()) {
    if (relays_.size() >= kMaxRelays) return errors::TooManySenders(kMaxRelays);
    known = relays_.emplace(name, std::make_unique<RelayState>(name)).first;
  }
  RelayState& relay = *known->second;
  if (!relay.connected) relay.turned_at = absl::ToInt64Nanoseconds(now);
  relay.connected = true;
  relay.received_at = absl::ToInt64Nanoseconds(now);
  ++relay.streams;
  return &relay;
}

void RelayTable::HandleMessage(RelayState* relay, absl::Duration now, absl::Duration interval) {
  MutexLock lock(mutex_);
  if (relay->IsSilent(now)) relay->turned_at = absl::ToInt64Nanoseconds(now);
  relay->received_at = absl::ToInt64Nanoseconds(now);
  relay->interval = absl::ToInt64Nanoseconds(interval);
}

void RelayTable::Close(RelayState* relay, absl::Duration now) {
  MutexLock lock(mutex_);
  if (--relay->streams > 0) return;
  relay->turned_at = absl::ToInt64Nanoseconds(now);
  relay->connected = false;
}

bool RelayTable::ExplainsSilence(const RelayState& relay, absl::Duration last_seen,
                                 absl::Duration now) const {
  if (IsAway(relay, now)) return now - AwaySince(relay) < options_.doubt_limit;
  const absl::Duration turned = TurnedAt(relay);
  return last_seen < turned && now - turned < options_.return_grace;
}

std::vector<const RelayState*> RelayTable::Lost(absl::Duration now) const {
  std::vector<const RelayState*> lost;
  MutexLock lock(mutex_);
  for (const auto& [name, relay] : relays_) {
    if (IsAway(*relay, now) && now - AwaySince(*relay) < options_.doubt_limit) {
      lost.push_back(relay.get());
    }
  }
  return lost;
}

}  // namespace muster
