#include "services/status/heartbeats/silence_judge.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/status/heartbeats/evidence.h"

namespace muster {
namespace {

// After this time gRPC has closed the socket of a connection that ended.
constexpr absl::Duration kSettleTime = absl::Milliseconds(500);

// After this time the kernel drops a dead connection that carries only gRPC's keepalive
// (rpc/server.cc).
constexpr absl::Duration kKernelGivesUp = absl::Seconds(45);

std::string InSeconds(absl::Duration d) {
  return absl::FormatDuration(absl::Trunc(d, absl::Seconds(1)));
}

std::string ByDisconnected(const RelayState* relay) {
  if (relay == nullptr || relay->connected) return "";
  return absl::StrCat("; relay ", relay->name, ", which forwards its heartbeats, is not connected");
}

}  // namespace

SilenceJudge::SilenceJudge(const Options& options, const Clock& clock, SenderTable& senders,
                           const RelayTable& relays, Query query, RegistryMetrics& metrics)
    : options_(options),
      clock_(clock),
      senders_(senders),
      relays_(relays),
      query_(std::move(query)),
      metrics_(metrics),
      last_tick_(senders.started()),
      service_doubt_(options.doubt) {}

std::string SilenceJudge::Doubt() const {
  const absl::Duration now = clock_.MonotonicNow();
  {
    MutexLock lock(doubt_mutex_);
    if (std::string doubt = service_doubt_.Doubt(now); !doubt.empty()) return doubt;
  }
  // Restored senders, until they send or are judged.
  const int64_t unheard = senders_.count(v1::PRESENCE_UNKNOWN) - senders_.doubted();
  if (unheard <= 0) return "";
  const absl::Duration age = absl::Trunc(now - senders_.started(), absl::Seconds(1));
  return absl::StrCat("the status service started ", absl::FormatDuration(age), " ago: ", unheard,
                      unheard == 1
                          ? " sender has sent no heartbeat since, so its state is unknown"
                          : " senders have sent no heartbeat since, so their state is unknown");
}

void SilenceJudge::AddClosed(std::shared_ptr<SenderEntry> entry) {
  MutexLock lock(closed_mutex_);
  closed_.emplace_back(clock_.MonotonicNow(), std::move(entry));
}

void SilenceJudge::Tick(SenderEffects* effects) {
  const absl::Duration now = clock_.MonotonicNow();
  const absl::Duration interval = senders_.Interval();
  const absl::Duration lag = std::max(now - last_tick_ - options_.tick, absl::ZeroDuration());
  last_tick_ = now;
  {
    MutexLock lock(doubt_mutex_);
    service_doubt_.Ticked(now, lag, interval);
  }
  const bool doubted_before = service_doubt_.doubts_many();
  const std::vector<std::shared_ptr<SenderEntry>> silent = FindSilent(now, effects);
  if (!doubted_before && service_doubt_.doubts_many()) DoubtNewlyLate(now, effects);
  for (const auto& entry : silent) Judge(*entry, now, effects);
  while (!newly_late_.empty() && newly_late_.front().first <= now - interval) {
    newly_late_.pop_front();
  }
  CheckConnections(now, effects);
  metrics_.probes.Add(static_cast<double>(effects->probes.size()));
  Measure(lag);
}

// Returns the senders that are due and have sent nothing meanwhile. Counts them for the doubt.
std::vector<std::shared_ptr<SenderEntry>> SilenceJudge::FindSilent(absl::Duration now,
                                                                   SenderEffects* effects) {
  std::vector<std::shared_ptr<SenderEntry>> silent;
  int64_t fell_silent = 0;
  int64_t were_online = 0;
  senders_.Advance(now, [&](Shard& shard, SenderEntry& entry) {
    shard.mutex.AssertHeld();
    if (Defer(shard, entry, now, effects)) return;
    silent.push_back(entry.shared_from_this());
    if (now - entry.last_seen() < entry.interval() * 2 || service_doubt_.holds(now)) return;
    const bool online = entry.presence() == v1::PRESENCE_ONLINE;
    if (IsExplained(entry, now)) {
      if (online) ++were_online;
      return;
    }
    if (!online && (entry.presence() != v1::PRESENCE_UNKNOWN || entry.doubted())) return;
    if (online) ++were_online;
    if (!entry.ClosedByPeer(shard)) ++fell_silent;
  });
  MutexLock lock(doubt_mutex_);
  service_doubt_.Count(now, fell_silent, senders_.count(v1::PRESENCE_ONLINE) - were_online,
                       senders_.doubted(), senders_.Interval());
  return silent;
}

bool SilenceJudge::IsExplained(const SenderEntry& entry, absl::Duration now) const {
  return entry.relay() != nullptr &&
         relays_.ExplainsSilence(*entry.relay(), entry.last_seen(), now);
}

// Returns whether there is nothing to judge now: the sender has sent a heartbeat, or is lost or
// offline and not old enough to be forgotten. Then schedules its next check.
bool SilenceJudge::Defer(Shard& shard, SenderEntry& entry, absl::Duration now,
                         SenderEffects* effects) {
  if (entry.duplicate_agent() && now - entry.state(shard).duplicate_since >= options_.lost_after) {
    entry.set_duplicate_agent(false);
    effects->changed.push_back(entry.shared_from_this());
  }
  const absl::Duration silence = now - entry.last_seen();
  if (entry.state(shard).goodbye && silence >= entry.CheckAfter()) {
    AwaitOther(shard, entry, now, effects);
    return true;
  }
  const bool gone = IsGone(entry.presence());
  if (gone && silence >= options_.forget_after) {
    senders_.Forget(shard, entry);
    return true;
  }
  if (!gone && silence >= entry.CheckAfter()) return false;
  senders_.Schedule(shard, entry,
                    entry.last_seen() + (gone ? options_.forget_after : entry.CheckAfter()));
  return true;
}

// One of two processes said goodbye. The sender is offline if the other one does not try again.
void SilenceJudge::AwaitOther(Shard& shard, SenderEntry& entry, absl::Duration now,
                              SenderEffects* effects) {
  if (entry.state(shard).AwaitsOther(now)) {
    const absl::Duration end = entry.state(shard).duplicate_since + SenderState::kLongestRetry;
    return senders_.Schedule(shard, entry, end + options_.tick);
  }
  entry.state(shard).goodbye = false;
  entry.set_evidence(Evidence::kNone);
  senders_.SetPresence(shard, entry, v1::PRESENCE_OFFLINE, now,
                       "goodbye, and the other process has not returned", effects);
  senders_.Schedule(shard, entry, entry.last_seen() + options_.forget_after);
}

void SilenceJudge::Judge(SenderEntry& entry, absl::Duration now, SenderEffects* effects) {
  Shard& shard = senders_.ShardOf(entry);
  MutexLock lock(shard.mutex);
  if (!entry.state(shard).listed || Defer(shard, entry, now, effects)) return;
  if (now - entry.last_seen() < entry.interval() * 2) {
    JudgeOverdue(shard, entry, now, effects);
  } else {
    JudgeSilent(shard, entry, now, effects);
  }
}

// One heartbeat is overdue: a look at the connection, which may be gone later.
void SilenceJudge::JudgeOverdue(Shard& shard, SenderEntry& entry, absl::Duration now,
                                SenderEffects* effects) {
  absl::Duration next = entry.last_seen() + entry.interval() * 2;
  // The kernel may drop a dead connection before two long intervals are over. The last look has to
  // be just before that.
  const bool repeat = next - entry.last_seen() > kKernelGivesUp;
  if (entry.state(shard).streams.connected() && (repeat || !entry.state(shard).checked)) {
    effects->checks.push_back(entry.shared_from_this());
  }
  entry.state(shard).checked = true;
  if (repeat) next = std::min(next, now + entry.CheckAfter());
  senders_.Schedule(shard, entry, next);
}

void SilenceJudge::JudgeSilent(Shard& shard, SenderEntry& entry, absl::Duration now,
                               SenderEffects* effects) {
  const v1::Presence before = entry.presence();
  if (service_doubt_.holds(now)) {
    if (before != v1::PRESENCE_UNKNOWN) {
      senders_.SetPresence(shard, entry, v1::PRESENCE_UNKNOWN, now, service_doubt_.Doubt(now),
                           effects);
    }
    return senders_.Schedule(shard, entry, service_doubt_.held_until());
  }
  const absl::Duration half = now + entry.interval() / 2;
  if (service_doubt_.doubts_many() && !entry.ClosedByPeer(shard)) {
    if (before == v1::PRESENCE_ONLINE || before == v1::PRESENCE_UNKNOWN) {
      senders_.SetDoubted(shard, entry, now, service_doubt_.Doubt(now), effects);
    }
    return senders_.Schedule(shard, entry, half);
  }
  if (IsExplained(entry, now)) {
    senders_.SetDoubted(shard, entry, now, WhyUnknown(*entry.relay(), now), effects);
    return senders_.Schedule(shard, entry, half);
  }
  SetSilentPresence(shard, entry, now, effects);
}

void SilenceJudge::SetSilentPresence(Shard& shard, SenderEntry& entry, absl::Duration now,
                                     SenderEffects* effects) {
  const absl::Duration silence = now - entry.last_seen();
  const absl::Duration suspect = entry.interval() * 3;
  const absl::Duration lost = std::max(options_.lost_after, suspect);
  const v1::Presence presence = silence >= lost      ? v1::PRESENCE_LOST
                                : silence >= suspect ? v1::PRESENCE_SUSPECT
                                                     : v1::PRESENCE_LATE;
  if (presence != entry.presence()) {
    senders_.SetPresence(
        shard, entry, presence, now,
        absl::StrCat("no heartbeat for ", InSeconds(silence), ByDisconnected(entry.relay())),
        effects);
    if (presence == v1::PRESENCE_LATE) newly_late_.emplace_back(now, entry.weak_from_this());
    if (entry.state(shard).streams.connected()) {
      if (auto link = entry.state(shard).streams.link(); link != nullptr) {
        effects->probes.push_back(std::move(link));
      }
    }
  }
  absl::Duration next =
      entry.last_seen() + (presence == v1::PRESENCE_LATE      ? suspect
                           : presence == v1::PRESENCE_SUSPECT ? lost
                                                              : options_.forget_after);
  if (presence != v1::PRESENCE_LOST && entry.state(shard).streams.connected() &&
      entry.state(shard).streams.peer().port != 0) {
    effects->checks.push_back(entry.shared_from_this());
    next = std::min(next,
                    now + (entry.evidence() == Evidence::kNone ? options_.tick : entry.interval()));
  }
  senders_.Schedule(shard, entry, next);
}

// The first of many silent senders turned late before the others were silent.
void SilenceJudge::DoubtNewlyLate(absl::Duration now, SenderEffects* effects) {
  for (const auto& [at, weak] : newly_late_) {
    const auto entry = weak.lock();
    if (entry == nullptr) continue;
    Shard& shard = senders_.ShardOf(*entry);
    MutexLock lock(shard.mutex);
    if (!entry->state(shard).listed || entry->presence() != v1::PRESENCE_LATE ||
        entry->ClosedByPeer(shard)) {
      continue;
    }
    senders_.SetDoubted(shard, *entry, now, service_doubt_.Doubt(now), effects);
  }
  newly_late_.clear();
}

void SilenceJudge::CheckConnections(absl::Duration now, SenderEffects* effects) {
  std::vector<std::shared_ptr<SenderEntry>> entries = std::move(effects->checks);
  {
    MutexLock lock(closed_mutex_);
    const auto settled = std::stable_partition(
        closed_.begin(), closed_.end(), [&](const auto& c) { return c.first > now - kSettleTime; });
    for (auto it = settled; it != closed_.end(); ++it) entries.push_back(std::move(it->second));
    closed_.erase(settled, closed_.end());
  }
  if (entries.empty()) return;
  std::vector<TcpPeer> peers;
  for (const auto& entry : entries) {
    Shard& shard = senders_.ShardOf(*entry);
    MutexLock lock(shard.mutex);
    peers.push_back(entry->state(shard).streams.peer());
  }
  std::vector<TcpState> states = query_(peers);
  const bool asked = !states.empty();
  states.resize(peers.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    SenderEntry& entry = *entries[i];
    Shard& shard = senders_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    // The sender may have returned by another connection meanwhile.
    if (!(entry.state(shard).streams.peer() == peers[i])) continue;
    entry.state(shard).asked = asked;
    ApplyState(shard, entry, states[i], effects);
  }
}

void SilenceJudge::ApplyState(Shard& shard, SenderEntry& entry, const TcpState& state,
                              SenderEffects* effects) {
  const v1::Presence presence = entry.presence();
  const bool connected = entry.state(shard).streams.connected();
  if (entry.state(shard).streams.peer().port == 0 || presence == v1::PRESENCE_OFFLINE) return;
  if (connected && presence == v1::PRESENCE_ONLINE) {
    entry.state(shard).unanswered = state.sent == TcpState::Sent::kUnacknowledged;
    return;
  }
  const Evidence evidence =
      EvidenceFrom(state, entry.evidence(), connected, entry.state(shard).unanswered);
  if (evidence == entry.evidence()) return;
  entry.set_evidence(evidence);
  effects->changed.push_back(entry.shared_from_this());
  effects->to_store.push_back(entry.shared_from_this());
  senders_.AddEvent(entry, std::string(DescribeEvidence(evidence)), effects);
}

void SilenceJudge::Measure(absl::Duration lag) {
  for (int i = v1::PRESENCE_ONLINE; i < v1::Presence_ARRAYSIZE; ++i) {
    const auto presence = static_cast<v1::Presence>(i);
    metrics_.senders.With({v1::Presence_Name(presence)})
        .Set(static_cast<double>(senders_.count(presence)));
  }
  metrics_.interval.Set(absl::ToDoubleSeconds(senders_.Interval()));
  metrics_.doubt.Set(Doubt().empty() && relays_.Lost(last_tick_).empty() ? 0 : 1);
  metrics_.lag.Set(absl::ToDoubleSeconds(lag));
}

}  // namespace muster
