#include "services/status/heartbeats/sender_table.h"

#include "services/common/errors/heartbeats.h"
#include "services/common/rpc/proto_time.h"

namespace muster {

SenderTable::SenderTable(const Options& options, const Clock& clock, RegistryMetrics& metrics)
    : options_(options),
      clock_(clock),
      metrics_(metrics),
      started_(clock.MonotonicNow()),
      shards_(new Shard[kShards]) {}

SenderTable::~SenderTable() {
  ForEach([](Shard&, const std::shared_ptr<SenderEntry>& entry) {
    TimingWheel::Remove(*entry);
    return true;
  });
}

absl::Duration SenderTable::Interval() const {
  return std::max(options_.interval,
                  absl::Seconds(1) * count(v1::PRESENCE_ONLINE) / options_.target_rate);
}

SenderTable::Shard& SenderTable::ShardOf(std::string_view uri, std::string_view node) const {
  return shards_[Shard::Hash()(Shard::Key{uri, node}) % kShards];
}

absl::StatusOr<std::shared_ptr<SenderEntry>> SenderTable::FindOrAdd(Shard& shard,
                                                                    const std::string& uri,
                                                                    const std::string& node) {
  if (auto known = Find(shard, uri, node)) return known;
  if (senders_ >= options_.max_senders) {
    metrics_.refused.Add();
    return errors::TooManySenders(options_.max_senders);
  }
  auto entry = std::make_shared<SenderEntry>(uri, node);
  entry->set_interval(Interval());
  List(shard, *entry);
  return entry;
}

std::shared_ptr<SenderEntry> SenderTable::Find(Shard& shard, const std::string& uri,
                                               const std::string& node) const {
  const auto known = shard.entries.find(Shard::Key{uri, node});
  return known == shard.entries.end() ? nullptr : *known;
}

void SenderTable::List(Shard& shard, SenderEntry& entry) {
  if (entry.state(shard).listed || !shard.entries.insert(entry.shared_from_this()).second) return;
  entry.state(shard).listed = true;
  ++senders_;
  // SetPresence has counted it out when it was forgotten.
  if (entry.presence() != v1::PRESENCE_UNSPECIFIED) ++count_[static_cast<size_t>(entry.presence())];
  if (entry.doubted()) ++doubted_;
}

void SenderTable::Forget(Shard& shard, SenderEntry& entry) {
  TimingWheel::Remove(entry);
  if (!entry.state(shard).listed) return;
  entry.state(shard).listed = false;
  --senders_;
  if (entry.doubted()) --doubted_;
  if (entry.presence() != v1::PRESENCE_UNSPECIFIED) --count_[static_cast<size_t>(entry.presence())];
  shard.entries.erase(entry.shared_from_this());
}

void SenderTable::SetPresence(Shard& shard, SenderEntry& entry, v1::Presence presence,
                              absl::Duration now, std::string detail, SenderEffects* effects) {
  if (presence != v1::PRESENCE_UNKNOWN && entry.doubted()) {
    entry.set_doubted(false);
    if (entry.state(shard).listed) --doubted_;
  }
  RestorePresence(shard, entry, presence, now);
  entry.state(shard).changed = true;
  metrics_.transitions.With({v1::Presence_Name(presence)}).Add();
  effects->changed.push_back(entry.shared_from_this());
  // After a crash, a stored ONLINE would become LOST.
  if (presence == v1::PRESENCE_OFFLINE) effects->to_store.push_back(entry.shared_from_this());
  AddEvent(entry, std::move(detail), effects);
}

void SenderTable::RestorePresence(Shard& shard, SenderEntry& entry, v1::Presence presence,
                                  absl::Duration since) {
  if (entry.state(shard).listed) {
    const v1::Presence from = entry.presence();
    if (from != v1::PRESENCE_UNSPECIFIED) --count_[static_cast<size_t>(from)];
    ++count_[static_cast<size_t>(presence)];
  }
  entry.set_presence(presence, since);
}

void SenderTable::SetDoubted(Shard& shard, SenderEntry& entry, absl::Duration now,
                             std::string detail, SenderEffects* effects) {
  if (entry.doubted()) return;
  entry.set_doubted(true);
  if (entry.state(shard).listed) ++doubted_;
  SetPresence(shard, entry, v1::PRESENCE_UNKNOWN, now, std::move(detail), effects);
}

void SenderTable::AddEvent(const Sender& sender, std::string detail, SenderEffects* effects) const {
  v1::NodeEvent event;
  ToProto(clock_.Now(), event.mutable_time());
  event.set_presence(sender.presence());
  event.set_detail(std::move(detail));
  effects->events.emplace_back(sender.node(), std::move(event));
}

void SenderTable::Schedule(Shard& shard, SenderEntry& entry, absl::Duration at) {
  absl::Duration rest;
  const int64_t tick = absl::IDivDuration(
      std::max(at - started_, absl::ZeroDuration()) + options_.tick - absl::Nanoseconds(1),
      options_.tick, &rest);
  shard.wheel.Add(entry, tick);
}

void SenderTable::Advance(absl::Duration now,
                          const std::function<void(Shard& shard, SenderEntry& entry)>& due) {
  absl::Duration rest;
  const int64_t tick =
      absl::IDivDuration(std::max(now - started_, absl::ZeroDuration()), options_.tick, &rest);
  for (size_t i = 0; i < kShards; ++i) {
    Shard& shard = shards_[i];
    MutexLock lock(shard.mutex);
    shard.wheel.Advance(tick,
                        [&](WheelNode& node) { due(shard, static_cast<SenderEntry&>(node)); });
  }
}

void SenderTable::ForEach(
    const std::function<bool(Shard& shard, const std::shared_ptr<SenderEntry>& entry)>& visit) {
  for (size_t i = 0; i < kShards; ++i) {
    Shard& shard = shards_[i];
    MutexLock lock(shard.mutex);
    for (const auto& entry : shard.entries) {
      if (!visit(shard, entry)) return;
    }
  }
}

}  // namespace muster
