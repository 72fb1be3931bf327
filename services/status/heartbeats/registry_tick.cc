// The passing of time in the registry: silence, doubt, evidence.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/errors/heartbeats.h"
#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/registry_entry.h"

namespace muster {
namespace {

// A connection that ended is looked at so much later: gRPC has closed its socket by then.
constexpr absl::Duration kSettles = absl::Milliseconds(500);

// When the kernel gives up a dead connection on which only gRPC's keepalive speaks (rpc/server.cc).
constexpr absl::Duration kGivesUp = absl::Seconds(45);

// Far more than any fleet has.
constexpr size_t kMaxRelays = 10'000;

std::string InSeconds(absl::Duration d) {
  return absl::FormatDuration(absl::Trunc(d, absl::Seconds(1)));
}

std::string_view InWords(Evidence evidence) {
  switch (evidence) {
    case Evidence::kClosed:
      return "its connection was closed without a goodbye";
    case Evidence::kAcknowledging:
      return "no heartbeat, but its machine acknowledges what is sent to it";
    case Evidence::kUnacknowledged:
      return "no heartbeat, and nothing that is sent to it is acknowledged";
    case Evidence::kNone:
    case Evidence::kRestarted:
    case Evidence::kRevoked:
      break;
  }
  return "";
}

std::string LostRelay(const RelayState& relay, absl::Duration now) {
  return absl::StrCat("relay ", relay.name, " is not connected (",
                      InSeconds(now - absl::Nanoseconds(relay.turned_at.load())),
                      "): nothing is known of what hangs below it");
}

// What the kernel sees is the relay's connection, not the sender's.
std::string ByRelay(const RelayState* relay) {
  if (relay == nullptr) return "";
  return absl::StrCat("; it comes by relay ", relay->name,
                      relay->connected ? ", which is connected" : ", which is not connected");
}

}  // namespace

bool Registry::BelowLostRelay(const Entry& entry, absl::Duration now) const {
  const RelayState* const relay = entry.relay();
  if (relay == nullptr) return false;
  const absl::Duration turned = absl::Nanoseconds(relay->turned_at.load());
  if (!relay->connected) return now - turned < options_.doubt_limit;
  // It is back: those who were there before are waited for, as after a start of this service.
  return entry.last_seen() < turned &&
         now - turned < std::max(options_.grace, options_.interval * 2);
}

absl::StatusOr<RelayState*> Registry::OpenRelay(const std::string& name) {
  MutexLock lock(relays_mutex_);
  std::unique_ptr<RelayState>& relay = relays_[name];
  if (relay == nullptr) {
    if (relays_.size() > kMaxRelays) {
      relays_.erase(name);
      return errors::TooManySenders(kMaxRelays);
    }
    relay = std::make_unique<RelayState>(name);
  }
  if (!relay->connected) relay->turned_at = absl::ToInt64Nanoseconds(clock_.MonotonicNow());
  relay->connected = true;
  ++relay->streams;
  return relay.get();
}

void Registry::CloseRelay(RelayState* relay) {
  MutexLock lock(relays_mutex_);
  if (--relay->streams > 0) return;
  relay->turned_at = absl::ToInt64Nanoseconds(clock_.MonotonicNow());
  relay->connected = false;
}

std::string Registry::DoubtOfRelays(absl::Duration now) const {
  MutexLock lock(relays_mutex_);
  for (const auto& [name, relay] : relays_) {
    if (!relay->connected &&
        now - absl::Nanoseconds(relay->turned_at.load()) < options_.doubt_limit) {
      return LostRelay(*relay, now);
    }
  }
  return "";
}

int64_t Registry::TickBefore(absl::Duration at) const {
  absl::Duration rest;
  return absl::IDivDuration(std::max(at - started_, absl::ZeroDuration()), options_.tick, &rest);
}

int64_t Registry::TickAfter(absl::Duration at) const {
  return TickBefore(at + options_.tick - absl::Nanoseconds(1));
}

void Registry::Tick() {
  const absl::Duration now = clock_.MonotonicNow();
  const absl::Duration interval = Interval();
  const absl::Duration lag = std::max(now - last_tick_ - options_.tick, absl::ZeroDuration());
  last_tick_ = now;
  {
    MutexLock lock(observer_mutex_);
    observer_.Ticked(now, lag, interval);
  }
  Effects effects;
  const bool doubted_before = observer_.doubts_many();
  const std::vector<std::shared_ptr<Entry>> silent = FallDue(now, &effects);
  if (!doubted_before && observer_.doubts_many()) DoubtNewlyLate(now, &effects);
  for (const auto& entry : silent) Judge(*entry, now, &effects);
  while (!newly_late_.empty() && newly_late_.front().first <= now - interval) {
    newly_late_.pop_front();
  }
  LookAtConnections(now, &effects);
  figures_->probes.Add(static_cast<double>(effects.probes.size()));
  CarryOut(std::move(effects));
  Measure(lag);
}

// Whose moment has come and who was not heard meanwhile; tells the observer how many they are.
std::vector<std::shared_ptr<Registry::Entry>> Registry::FallDue(absl::Duration now,
                                                                Effects* effects) {
  std::vector<std::shared_ptr<Entry>> silent;
  int64_t fell_silent = 0;
  int64_t were_online = 0;
  for (size_t i = 0; i < kShards; ++i) {
    Shard& shard = shards_[i];
    MutexLock lock(shard.mutex);
    shard.wheel.Advance(TickBefore(now), [&](WheelNode& node) {
      auto& entry = static_cast<Entry&>(node);
      if (Settle(shard, entry, now, effects)) return;
      silent.push_back(entry.shared_from_this());
      if (now - entry.last_seen() < entry.interval() * 2 || observer_.holds(now)) {
        return;
      }
      // Why these are silent is known.
      if (BelowLostRelay(entry, now)) {
        if (entry.presence() == v1::PRESENCE_ONLINE) ++were_online;
        return;
      }
      const bool online = entry.presence() == v1::PRESENCE_ONLINE;
      if (!online && (entry.presence() != v1::PRESENCE_UNKNOWN || entry.doubted())) return;
      if (online) ++were_online;
      if (!entry.ClosedByPeer()) ++fell_silent;
    });
  }
  MutexLock lock(observer_mutex_);
  observer_.Count(now, fell_silent, present_[v1::PRESENCE_ONLINE] - were_online, doubted_,
                  Interval());
  return silent;
}

// Whether there is nothing to judge: it was heard, or it is gone. The caller holds the shard's
// mutex.
bool Registry::Settle(Shard& shard, Entry& entry, absl::Duration now, Effects* effects) {
  shard.mutex.AssertHeld();
  if (entry.duplicate_agent() && now - entry.double_since >= options_.lost_after) {
    entry.set_duplicate_agent(false);
    effects->changed.push_back(entry.shared_from_this());
  }
  const v1::Presence presence = entry.presence();
  const absl::Duration silence = now - entry.last_seen();
  absl::Duration due;
  if (presence == v1::PRESENCE_OFFLINE || presence == v1::PRESENCE_LOST) {
    if (silence >= options_.forget_after) {
      Forget(shard, entry);
      return true;
    }
    due = entry.last_seen() + options_.forget_after;
  } else if (silence < entry.LookAfter()) {
    due = entry.last_seen() + entry.LookAfter();
  } else {
    return false;
  }
  shard.wheel.Add(entry, TickAfter(due));
  return true;
}

void Registry::Judge(Entry& entry, absl::Duration now, Effects* effects) {
  Shard& shard = ShardOf(entry.uri(), entry.node());
  MutexLock lock(shard.mutex);
  if (!entry.listed || Settle(shard, entry, now, effects)) return;
  if (now - entry.last_seen() >= entry.interval() * 2) {
    return JudgeSilent(shard, entry, now, effects);
  }
  absl::Duration next = entry.last_seen() + entry.interval() * 2;
  // A dead connection may be given up, and forgotten by the kernel, before two long intervals are
  // over: another look has to be just before that.
  const bool repeat = next - entry.last_seen() > kGivesUp;
  if (entry.connected && (repeat || !entry.looked)) {
    effects->looks.push_back(entry.shared_from_this());
  }
  entry.looked = true;
  if (repeat) next = std::min(next, now + entry.LookAfter());
  shard.wheel.Add(entry, TickAfter(next));
}

void Registry::JudgeSilent(Shard& shard, Entry& entry, absl::Duration now, Effects* effects) {
  shard.mutex.AssertHeld();
  const v1::Presence before = entry.presence();
  if (observer_.holds(now)) {
    if (before != v1::PRESENCE_UNKNOWN) {
      Turn(entry, v1::PRESENCE_UNKNOWN, now, observer_.Doubt(now), effects);
    }
    return shard.wheel.Add(entry, TickAfter(observer_.held_until()));
  }
  if (observer_.doubts_many() && !entry.ClosedByPeer()) {
    if (before == v1::PRESENCE_ONLINE || before == v1::PRESENCE_UNKNOWN) {
      Doubt(entry, now, observer_.Doubt(now), effects);
    }
    return shard.wheel.Add(entry, TickAfter(now + entry.interval() / 2));
  }
  if (BelowLostRelay(entry, now)) {
    Doubt(entry, now, LostRelay(*entry.relay(), now), effects);
    return shard.wheel.Add(entry, TickAfter(now + entry.interval() / 2));
  }
  const absl::Duration silence = now - entry.last_seen();
  const absl::Duration suspect = entry.interval() * 3;
  const absl::Duration lost = std::max(options_.lost_after, suspect);
  const v1::Presence presence = silence >= lost      ? v1::PRESENCE_LOST
                                : silence >= suspect ? v1::PRESENCE_SUSPECT
                                                     : v1::PRESENCE_LATE;
  if (presence != before) {
    Turn(entry, presence, now,
         absl::StrCat("no heartbeat for ", InSeconds(silence), ByRelay(entry.relay())), effects);
    if (presence == v1::PRESENCE_LATE) newly_late_.emplace_back(now, entry.weak_from_this());
    if (const auto line = entry.line.lock(); line != nullptr && entry.connected) {
      effects->probes.push_back(line);
    }
  }
  absl::Duration next =
      entry.last_seen() + (presence == v1::PRESENCE_LATE      ? suspect
                           : presence == v1::PRESENCE_SUSPECT ? lost
                                                              : options_.forget_after);
  if (presence == v1::PRESENCE_LOST) {
    shard.wheel.Add(entry, TickAfter(next));
    return;
  }
  if (entry.connected && entry.peer.port != 0) {
    effects->looks.push_back(entry.shared_from_this());
    next = std::min(next,
                    now + (entry.evidence() == Evidence::kNone ? options_.tick : entry.interval()));
  }
  shard.wheel.Add(entry, TickAfter(next));
}

// The caller holds the shard's mutex.
void Registry::Doubt(Entry& entry, absl::Duration now, std::string why, Effects* effects) {
  if (entry.doubted()) return;
  entry.set_doubted(true);
  ++doubted_;
  Turn(entry, v1::PRESENCE_UNKNOWN, now, std::move(why), effects);
}

// The first of the many were called late before there were many.
void Registry::DoubtNewlyLate(absl::Duration now, Effects* effects) {
  for (const auto& [at, weak] : newly_late_) {
    const auto entry = weak.lock();
    if (entry == nullptr) continue;
    MutexLock lock(ShardOf(entry->uri(), entry->node()).mutex);
    if (!entry->listed || entry->presence() != v1::PRESENCE_LATE || entry->ClosedByPeer()) continue;
    Doubt(*entry, now, observer_.Doubt(now), effects);
  }
  newly_late_.clear();
}

void Registry::LookAtConnections(absl::Duration now, Effects* effects) {
  std::vector<std::shared_ptr<Entry>> entries = std::move(effects->looks);
  {
    MutexLock lock(closed_mutex_);
    const auto settled = std::stable_partition(
        closed_.begin(), closed_.end(), [&](const auto& c) { return c.first > now - kSettles; });
    for (auto it = settled; it != closed_.end(); ++it) entries.push_back(std::move(it->second));
    closed_.erase(settled, closed_.end());
  }
  if (entries.empty()) return;
  std::vector<TcpPeer> peers;
  for (const auto& entry : entries) {
    MutexLock lock(ShardOf(entry->uri(), entry->node()).mutex);
    peers.push_back(entry->peer);
  }
  std::vector<TcpState> sights = look_(peers);
  const bool asked = !sights.empty();
  sights.resize(peers.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    MutexLock lock(ShardOf(entries[i]->uri(), entries[i]->node()).mutex);
    // It may have come back, over another connection, while the kernel was asked.
    if (!(entries[i]->peer == peers[i])) continue;
    entries[i]->asked = asked;
    ApplySight(*entries[i], sights[i], effects);
  }
}

// The caller holds the shard's mutex.
void Registry::ApplySight(Entry& entry, const TcpState& sight, Effects* effects) {
  const v1::Presence presence = entry.presence();
  if (entry.peer.port == 0 || presence == v1::PRESENCE_OFFLINE) return;
  const bool unacknowledged = sight.sent == TcpState::Sent::kUnacknowledged;
  Evidence evidence = entry.evidence();
  if (!entry.connected) {
    if (sight.ended_here) {
      evidence = sight.sent == TcpState::Sent::kAcknowledged ? Evidence::kAcknowledging
                                                             : Evidence::kUnacknowledged;
    } else if (evidence != Evidence::kUnacknowledged) {
      // The kernel gives up a connection whose far end is silent: that is no crash.
      evidence = entry.unanswered ? Evidence::kUnacknowledged : Evidence::kClosed;
    }
  } else if (presence == v1::PRESENCE_ONLINE) {
    entry.unanswered = unacknowledged;
    return;
  } else if (unacknowledged) {
    evidence = Evidence::kUnacknowledged;
  } else if (sight.sent == TcpState::Sent::kAcknowledged) {
    evidence = Evidence::kAcknowledging;
  }
  if (evidence == entry.evidence()) return;
  entry.set_evidence(evidence);
  effects->changed.push_back(entry.shared_from_this());
  Note(entry, std::string(InWords(evidence)), effects);
}

void Registry::Measure(absl::Duration lag) {
  for (int i = v1::PRESENCE_ONLINE; i < v1::Presence_ARRAYSIZE; ++i) {
    figures_->senders.With({v1::Presence_Name(static_cast<v1::Presence>(i))})
        .Set(static_cast<double>(present_[static_cast<size_t>(i)]));
  }
  figures_->interval.Set(absl::ToDoubleSeconds(Interval()));
  figures_->doubt.Set(doubt().empty() ? 0 : 1);
  figures_->lag.Set(absl::ToDoubleSeconds(lag));
}

}  // namespace muster
