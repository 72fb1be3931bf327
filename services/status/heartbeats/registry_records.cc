// What of the senders outlives the service.
#include <algorithm>

#include "services/status/heartbeats/registry.h"
#include "services/status/heartbeats/registry_entry.h"

namespace muster {

void Registry::Restore(const std::vector<SenderRecord>& records) {
  const absl::Time wall = clock_.Now();
  const auto monotonic = [&](absl::Time at) {
    return started_ - std::clamp(wall - at, absl::ZeroDuration(), absl::Hours(24 * 365));
  };
  Effects effects;
  for (const SenderRecord& record : records) {
    Shard& shard = ShardOf(record.uri, record.node);
    MutexLock lock(shard.mutex);
    auto found = FindOrAdd(shard, record.uri, record.node);
    if (!found.ok()) break;
    Entry& entry = **found;
    entry.set_last_seen(monotonic(record.last_seen));
    entry.set_interval(options_.interval);
    entry.instance = record.instance;
    entry.boot = record.boot;
    // Who was gone is still gone.
    const bool gone =
        record.presence == v1::PRESENCE_OFFLINE || record.presence == v1::PRESENCE_LOST;
    entry.set_presence(gone ? record.presence : v1::PRESENCE_UNKNOWN,
                       gone ? monotonic(record.presence_since) : started_);
    ++present_[static_cast<size_t>(entry.presence())];
    shard.wheel.Add(entry,
                    TickAfter(gone ? entry.last_seen() + options_.forget_after : grace_end_));
    effects.changed.push_back(*std::move(found));
  }
  CarryOut(std::move(effects));
}

std::vector<SenderRecord> Registry::TakeChanged(size_t max) {
  const absl::Time wall = clock_.Now();
  const absl::Duration now = clock_.MonotonicNow();
  std::vector<SenderRecord> records;
  for (size_t i = 0; i < kShards && records.size() < max; ++i) {
    MutexLock lock(shards_[i].mutex);
    for (const auto& entry : shards_[i].entries) {
      if (!entry->changed) continue;
      if (records.size() == max) break;
      entry->changed = false;
      records.push_back({entry->uri(), entry->node(), entry->presence(),
                         wall - (now - entry->presence_since()), wall - (now - entry->last_seen()),
                         entry->instance, entry->boot});
    }
  }
  return records;
}

}  // namespace muster
