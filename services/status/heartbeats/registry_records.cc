// The records of senders, by which a registry survives a restart.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/status/heartbeats/registry.h"

namespace muster {
namespace {

// The records of one call of the journal.
constexpr size_t kMaxBatch = 50'000;

}  // namespace

void Registry::Restore(const std::vector<SenderRecord>& records) {
  const absl::Duration started = senders_.started();
  const absl::Time wall = clock_.Now();
  const auto monotonic = [&](absl::Time at) {
    return started - std::clamp(wall - at, absl::ZeroDuration(), absl::Hours(24 * 365));
  };
  SenderEffects effects;
  for (const SenderRecord& record : records) {
    SenderTable::Shard& shard = senders_.ShardOf(record.uri, record.node);
    MutexLock lock(shard.mutex);
    auto found = senders_.FindOrAdd(shard, record.uri, record.node);
    if (!found.ok()) break;
    SenderEntry& entry = **found;
    entry.set_last_seen(monotonic(record.last_seen));
    entry.set_interval(options_.interval);
    entry.state(shard).instance = record.instance;
    entry.state(shard).boot = record.boot;
    entry.set_evidence(record.evidence);
    entry.state(shard).asked = record.evidence == Evidence::kClosed;
    const bool gone = IsGone(record.presence);
    senders_.RestorePresence(shard, entry, gone ? record.presence : v1::PRESENCE_UNKNOWN,
                             gone ? monotonic(record.presence_since) : started);
    senders_.Schedule(
        shard, entry,
        gone ? entry.last_seen() + options_.forget_after : started + GraceOf(options_));
    effects.changed.push_back(*std::move(found));
  }
  Deliver(std::move(effects));
}

bool Registry::StoreChanged() {
  for (;;) {
    std::vector<std::shared_ptr<SenderEntry>> changed;
    senders_.ForEach([&](SenderTable::Shard& shard, const std::shared_ptr<SenderEntry>& entry) {
      shard.mutex.AssertHeld();
      if (!entry->state(shard).changed) return true;
      if (changed.size() == kMaxBatch) return false;
      entry->state(shard).changed = false;
      changed.push_back(entry);
      return true;
    });
    if (!PutRecords(changed)) return false;
    if (changed.size() < kMaxBatch) return true;
  }
}

// Senders that the journal does not take remain changed.
bool Registry::PutRecords(const std::vector<std::shared_ptr<SenderEntry>>& entries) {
  if (entries.empty()) return true;
  std::vector<SenderRecord> records;
  for (const auto& entry : entries) {
    SenderTable::Shard& shard = senders_.ShardOf(*entry);
    MutexLock lock(shard.mutex);
    records.push_back(RecordOf(shard, *entry));
  }
  const size_t taken = journal_.PutSenders(std::move(records));
  for (size_t i = taken; i < entries.size(); ++i) {
    SenderTable::Shard& shard = senders_.ShardOf(*entries[i]);
    MutexLock lock(shard.mutex);
    entries[i]->state(shard).changed = true;
  }
  return taken == entries.size();
}

SenderRecord Registry::RecordOf(SenderTable::Shard& shard, SenderEntry& entry) const {
  const absl::Time wall = clock_.Now();
  const absl::Duration now = clock_.MonotonicNow();
  return {entry.uri(),
          entry.node(),
          entry.presence(),
          wall - (now - entry.presence_since()),
          wall - (now - entry.last_seen()),
          entry.state(shard).instance,
          entry.state(shard).boot,
          entry.evidence()};
}

}  // namespace muster
