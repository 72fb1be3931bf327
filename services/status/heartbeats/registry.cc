#include "services/status/heartbeats/registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"

namespace muster {
namespace {

// Without a text: 0.
uint64_t HashOf(std::string_view text) {
  return text.empty() ? 0 : std::max<uint64_t>(1, std::hash<std::string_view>()(text));
}

SilenceJudge::Options JudgeOptions(const RegistryOptions& options) {
  return {options.tick,
          options.lost_after,
          options.forget_after,
          {GraceOf(options), options.doubt_limit}};
}

// Describes the first heartbeat after `presence`, which was not ONLINE.
std::string DescribeReturn(v1::Presence presence, absl::Duration silence) {
  if (presence == v1::PRESENCE_UNSPECIFIED) return "first heartbeat";
  if (presence == v1::PRESENCE_OFFLINE) return "heartbeats started again";
  if (silence < absl::Seconds(1)) return "heartbeats resumed after less than 1s";
  return absl::StrCat("heartbeats resumed after ",
                      absl::FormatDuration(absl::Trunc(silence, absl::Seconds(1))));
}

}  // namespace

std::shared_ptr<const Sender> Registry::StreamRef::sender() const { return entry_; }

Registry::Registry(const RegistryOptions& options, const Clock& clock, HeartbeatListener& listener,
                   NodeJournal& journal, Query query, Metrics& metrics)
    : options_(options),
      clock_(clock),
      listener_(listener),
      journal_(journal),
      metrics_(metrics),
      senders_({options.tick, options.interval, options.target_rate, options.max_senders}, clock,
               metrics_),
      relays_({options.doubt_limit, GraceOf(options)}),
      judge_(JudgeOptions(options), clock, senders_, relays_, std::move(query), metrics_) {}

absl::StatusOr<Registry::StreamRef> Registry::Open(const SenderHello& hello,
                                                   SenderConnection connection) {
  const absl::Duration now = clock_.MonotonicNow();
  SenderEffects effects;
  absl::StatusOr<StreamRef> stream = StreamRef();
  {
    SenderTable::Shard& shard = senders_.ShardOf(hello.uri, hello.node);
    MutexLock lock(shard.mutex);
    ASSIGN_OR_RETURN(auto entry, senders_.FindOrAdd(shard, hello.uri, hello.node));
    if (ReplaceProcess(shard, *entry, hello, now, &effects)) {
      ASSIGN_OR_RETURN(const uint32_t number,
                       OpenStream(shard, *entry, hello, std::move(connection), &effects));
      stream = StreamRef(std::move(entry), number);
    } else {
      stream = errors::DuplicateAgent(hello.node);
    }
  }
  Deliver(std::move(effects));
  return stream;
}

absl::StatusOr<uint32_t> Registry::OpenStream(SenderTable::Shard& shard, SenderEntry& entry,
                                              const SenderHello& hello, SenderConnection connection,
                                              SenderEffects* effects) {
  std::shared_ptr<SenderLink> replaced;
  ASSIGN_OR_RETURN(
      const uint32_t number,
      entry.state(shard).streams.Open(HashOf(hello.pair), std::move(connection), &replaced));
  entry.set_relay(entry.state(shard).streams.relay());
  if (replaced != nullptr)
    effects->ends.emplace_back(std::move(replaced), errors::HeartbeatStreamReplaced());
  return number;
}

bool Registry::CloseStream(SenderTable::Shard& shard, SenderEntry& entry, uint32_t number) {
  if (!entry.state(shard).streams.Close(number)) return false;
  entry.set_relay(entry.state(shard).streams.relay());
  return true;
}

// Ends the streams of another process. Returns false if that process is online and younger: it
// continues, and the new stream is rejected.
bool Registry::ReplaceProcess(SenderTable::Shard& shard, SenderEntry& entry,
                              const SenderHello& hello, absl::Duration now,
                              SenderEffects* effects) {
  const uint64_t instance = HashOf(hello.instance);
  if (entry.state(shard).instance == instance) {
    entry.state(shard).boot = HashOf(hello.boot);
    return true;
  }
  const absl::Duration began = now - hello.uptime;
  const auto old_links = entry.state(shard).streams.Links();
  const bool other = entry.state(shard).instance != 0;
  const bool both = other && !old_links.empty() && entry.presence() == v1::PRESENCE_ONLINE;
  if (both) {
    entry.state(shard).duplicate_since = now;
    if (!entry.duplicate_agent()) {  // the older process tries again and again
      entry.set_duplicate_agent(true);
      metrics_.duplicate_agents.Add();
      senders_.AddEvent(entry,
                        "two processes send heartbeats with one identity: those of the older one "
                        "are rejected",
                        effects);
      effects->changed.push_back(entry.shared_from_this());
    }
    if (began < entry.state(shard).began) return false;
  }
  for (const auto& link : old_links) {
    effects->ends.emplace_back(
        link, both ? errors::DuplicateAgent(hello.node) : errors::HeartbeatStreamReplaced());
  }
  if (other) entry.state(shard).took_over = !both && entry.presence() != v1::PRESENCE_OFFLINE;
  entry.state(shard).streams.Clear();
  entry.state(shard).began = began;
  entry.state(shard).instance = instance;
  entry.state(shard).boot = HashOf(hello.boot);
  return true;
}

bool Registry::IsNews(const StreamRef& stream, int64_t sequence, Answer* answer) {
  SenderEntry& entry = *stream.entry_;
  SenderTable::Shard& shard = senders_.ShardOf(entry);
  MutexLock lock(shard.mutex);
  const int64_t* const newest = entry.state(shard).streams.FindSequence(stream.number_);
  if (newest != nullptr && sequence > *newest) return true;
  metrics_.out_of_order.Add();
  *answer = {newest == nullptr ? 0 : *newest, entry.interval()};
  return false;
}

template <typename Prepare>
Registry::Answer Registry::Handle(const StreamRef& stream, Prepare prepare) {
  SenderEntry& entry = *stream.entry_;
  const absl::Duration now = clock_.MonotonicNow();
  SenderEffects effects;
  Answer answer;
  {
    SenderTable::Shard& shard = senders_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    if (prepare(shard, entry, &answer.sequence)) Accept(shard, entry, now, &effects);
    answer.interval = entry.interval();
  }
  Deliver(std::move(effects));
  return answer;
}

Registry::Answer Registry::HandleHeartbeat(const StreamRef& stream, int64_t sequence,
                                           absl::Duration clock_skew) {
  return Handle(stream, [&](SenderTable::Shard& shard, SenderEntry& entry, int64_t* answer) {
    shard.mutex.AssertHeld();
    int64_t* const newest = entry.state(shard).streams.FindSequence(stream.number_);
    if (newest == nullptr) return false;
    *answer = *newest = std::max(*newest, sequence);
    entry.set_clock_skew(clock_skew);
    return true;
  });
}

Registry::Answer Registry::SendHeartbeat(const StreamRef& stream) {
  return Handle(stream, [](SenderTable::Shard&, SenderEntry&, int64_t*) { return true; });
}

absl::StatusOr<Registry::StreamRef> Registry::Visit(const std::string& uri,
                                                    const std::string& node) {
  SenderTable::Shard& shard = senders_.ShardOf(uri, node);
  MutexLock lock(shard.mutex);
  ASSIGN_OR_RETURN(auto entry, senders_.FindOrAdd(shard, uri, node));
  return StreamRef(std::move(entry), /*number=*/0);
}

void Registry::Accept(SenderTable::Shard& shard, SenderEntry& entry, absl::Duration now,
                      SenderEffects* effects) {
  metrics_.taken.Add();
  const absl::Duration silence = now - entry.last_seen();
  entry.set_last_seen(now);
  entry.set_interval(senders_.Interval());
  entry.state(shard).changed = true;
  entry.state(shard).checked = entry.state(shard).unanswered = false;
  entry.state(shard).goodbye = false;
  const bool restarted = std::exchange(entry.state(shard).took_over, false);
  const bool changed = restarted || entry.evidence() != Evidence::kNone;
  entry.set_evidence(Evidence::kNone);
  if (restarted) {
    entry.AddRestart();
    senders_.AddEvent(entry, "a new process took over without a goodbye", effects);
  }
  senders_.List(shard, entry);
  const v1::Presence before = entry.presence();
  // A stored OFFLINE would be believed after a crash.
  if (changed || before == v1::PRESENCE_UNSPECIFIED || IsGone(before)) {
    effects->to_store.push_back(entry.shared_from_this());
  }
  if (before != v1::PRESENCE_ONLINE) {
    senders_.SetPresence(shard, entry, v1::PRESENCE_ONLINE, now, DescribeReturn(before, silence),
                         effects);
    if (entry.state(shard).listed) senders_.Schedule(shard, entry, now + entry.CheckAfter());
  } else if (changed) {
    effects->changed.push_back(entry.shared_from_this());
  }
}

void Registry::Leave(const StreamRef& stream) {
  SenderEntry& entry = *stream.entry_;
  SenderTable::Shard& shard = senders_.ShardOf(entry);
  MutexLock lock(shard.mutex);
  if (entry.presence() == v1::PRESENCE_UNSPECIFIED && !entry.state(shard).streams.connected()) {
    senders_.Forget(shard, entry);
  }
}

void Registry::SetOffline(SenderTable::Shard& shard, SenderEntry& entry, std::string detail,
                          SenderEffects* effects) {
  const absl::Duration now = clock_.MonotonicNow();
  entry.set_evidence(Evidence::kNone);
  senders_.SetPresence(shard, entry, v1::PRESENCE_OFFLINE, now, std::move(detail), effects);
  senders_.Schedule(shard, entry, now + options_.forget_after);
}

void Registry::Goodbye(const StreamRef& stream) {
  SenderEntry& entry = *stream.entry_;
  SenderEffects effects;
  {
    SenderTable::Shard& shard = senders_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    if (!entry.state(shard).listed || !CloseStream(shard, entry, stream.number_)) return;
    if (entry.state(shard).streams.connected()) return;
    if (entry.duplicate_agent() && entry.state(shard).AwaitsOther(clock_.MonotonicNow())) {
      // The other process may live. Its heartbeats are accepted from its next try on.
      entry.state(shard).goodbye = true;
      senders_.AddEvent(entry, "goodbye of one of two processes", &effects);
    } else {
      SetOffline(shard, entry, "goodbye", &effects);
    }
  }
  Deliver(std::move(effects));
}

void Registry::SetFinished(const std::shared_ptr<const Sender>& sender) {
  SenderEffects effects;
  {
    SenderTable::Shard& shard = senders_.ShardOf(*sender);
    MutexLock lock(shard.mutex);
    const auto entry = senders_.Find(shard, sender->uri(), sender->node());
    if (entry == nullptr || entry->state(shard).streams.connected() || IsGone(entry->presence())) {
      return;
    }
    SetOffline(shard, *entry, "its work is finished", &effects);
  }
  Deliver(std::move(effects));
}

std::shared_ptr<const Sender> Registry::Find(const std::string& uri,
                                             const std::string& node) const {
  SenderTable::Shard& shard = senders_.ShardOf(uri, node);
  MutexLock lock(shard.mutex);
  return senders_.Find(shard, uri, node);
}

void Registry::Closed(const StreamRef& stream, bool by_peer) {
  SenderEntry& entry = *stream.entry_;
  {
    SenderTable::Shard& shard = senders_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    if (!CloseStream(shard, entry, stream.number_)) return;
    if (entry.state(shard).streams.connected()) return;
    if (entry.presence() == v1::PRESENCE_UNSPECIFIED) return senders_.Forget(shard, entry);
    if (!by_peer || entry.presence() == v1::PRESENCE_OFFLINE) return;
  }
  judge_.AddClosed(stream.entry_);
}

void Registry::Revoked(const StreamRef& stream) {
  SenderEntry& entry = *stream.entry_;
  SenderEffects effects;
  {
    SenderTable::Shard& shard = senders_.ShardOf(entry);
    MutexLock lock(shard.mutex);
    if (!CloseStream(shard, entry, stream.number_)) return;
    if (entry.state(shard).streams.connected()) return;
    if (entry.presence() == v1::PRESENCE_UNSPECIFIED) return senders_.Forget(shard, entry);
    if (entry.presence() == v1::PRESENCE_OFFLINE) return;
    entry.state(shard).streams.ForgetPeer();
    entry.set_evidence(Evidence::kRevoked);
    effects.changed.push_back(entry.shared_from_this());
    effects.to_store.push_back(entry.shared_from_this());
    senders_.AddEvent(entry, "its certificate was revoked", &effects);
  }
  Deliver(std::move(effects));
}

void Registry::Tick() {
  SenderEffects effects;
  judge_.Tick(&effects);
  Deliver(std::move(effects));
}

void Registry::EndAll(const absl::Status& why) {
  SenderEffects effects;
  senders_.ForEach([&](SenderTable::Shard& shard, const std::shared_ptr<SenderEntry>& entry) {
    shard.mutex.AssertHeld();
    for (auto& link : entry->state(shard).streams.Links()) {
      effects.ends.emplace_back(std::move(link), why);
    }
    return true;
  });
  Deliver(std::move(effects));
}

void Registry::Deliver(SenderEffects effects) {
  for (const auto& sender : effects.changed) listener_.PresenceChanged(sender);
  for (auto& [node, event] : effects.events) journal_.AddEvent(node, std::move(event));
  PutRecords(effects.to_store);
  for (const auto& link : effects.probes) link->Probe();
  for (const auto& [link, why] : effects.ends) link->End(why);
}

}  // namespace muster
