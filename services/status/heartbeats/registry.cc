#include "services/status/heartbeats/registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/rpc/proto_time.h"
#include "services/status/heartbeats/registry_entry.h"

namespace muster {
namespace {

// 0 stands for "not said".
uint64_t HashOf(std::string_view text) {
  return text.empty() ? 0 : std::max<uint64_t>(1, std::hash<std::string_view>()(text));
}

}  // namespace

Registry::Figures::Figures(Metrics& metrics)
    : heartbeats(metrics.AddCounters("muster_heartbeats_total",
                                     "Heartbeats by what became of them: taken, or out of order.",
                                     {"result"}, 2)),
      taken(heartbeats.With({"taken"})),
      out_of_order(heartbeats.With({"out_of_order"})),
      senders(metrics.AddGauges("muster_senders", "Senders of heartbeats by presence.",
                                {"presence"}, v1::Presence_ARRAYSIZE)),
      transitions(metrics.AddCounters("muster_sender_transitions_total",
                                      "Changes of senders' presence, by the new one.", {"presence"},
                                      v1::Presence_ARRAYSIZE)),
      probes(metrics.AddCounter("muster_heartbeat_probes_total",
                                "Senders that were asked for a heartbeat because none came.")),
      duplicate_agents(metrics.AddCounter("muster_duplicate_agents_total",
                                          "Streams of two processes with one identity.")),
      refused(metrics.AddCounter("muster_senders_refused_total",
                                 "Senders refused because there are too many.")),
      interval(metrics.AddGauge("muster_heartbeat_interval_seconds",
                                "What senders are told: after how long to send again.")),
      doubt(metrics.AddGauge("muster_heartbeat_doubt",
                             "1 while the service doubts its own sight and judges nobody.")),
      lag(metrics.AddGauge("muster_heartbeat_lag_seconds",
                           "By how much the last look at all senders came too late.")) {}

std::shared_ptr<const Sender> Registry::Seat::sender() const { return entry_; }

Registry::Registry(const RegistryOptions& options, const Clock& clock, HeartbeatListener& listener,
                   NodeJournal& journal, Look look, Metrics& metrics)
    : options_(options),
      clock_(clock),
      listener_(listener),
      journal_(journal),
      look_(std::move(look)),
      figures_(std::make_unique<Figures>(metrics)),
      started_(clock.MonotonicNow()),
      grace_end_(started_ + std::max(options.grace, options.interval * 2)),
      shards_(new Shard[kShards]),
      last_tick_(started_),
      observer_({std::max(options.grace, options.interval * 2), options.doubt_limit}) {}

Registry::~Registry() {
  for (size_t i = 0; i < kShards; ++i) {
    MutexLock lock(shards_[i].mutex);
    for (const auto& entry : shards_[i].entries) TimingWheel::Remove(*entry);
  }
}

Registry::Shard& Registry::ShardOf(std::string_view uri, std::string_view node) const {
  return shards_[Shard::Hash()(Shard::Key{uri, node}) % kShards];
}

absl::Duration Registry::Interval() const {
  const int64_t online = present_[v1::PRESENCE_ONLINE];
  return std::max(options_.interval, absl::Seconds(1) * online / options_.target_rate);
}

std::string Registry::doubt() const {
  const absl::Duration now = clock_.MonotonicNow();
  {
    MutexLock lock(observer_mutex_);
    if (std::string doubt = observer_.Doubt(now); !doubt.empty()) return doubt;
  }
  return DoubtOfRelays(now);
}

absl::StatusOr<std::shared_ptr<Registry::Entry>> Registry::FindOrAdd(Shard& shard,
                                                                     const std::string& uri,
                                                                     const std::string& node) {
  shard.mutex.AssertHeld();
  if (const auto it = shard.entries.find(Shard::Key{uri, node}); it != shard.entries.end()) {
    return *it;
  }
  if (senders_ >= options_.max_senders) {
    figures_->refused.Add();
    return errors::TooManySenders(options_.max_senders);
  }
  auto entry = std::make_shared<Entry>(uri, node);
  entry->set_interval(Interval());
  entry->listed = true;
  shard.entries.insert(entry);
  ++senders_;
  return entry;
}

absl::StatusOr<Registry::Seat> Registry::Open(const SenderHello& hello,
                                              std::weak_ptr<SenderLink> line, const TcpPeer& peer) {
  const absl::Duration now = clock_.MonotonicNow();
  Effects effects;
  absl::StatusOr<Seat> seat = Seat();
  {
    Shard& shard = ShardOf(hello.uri, hello.node);
    MutexLock lock(shard.mutex);
    ASSIGN_OR_RETURN(auto found, FindOrAdd(shard, hello.uri, hello.node));
    Entry& entry = *found;
    if (TakePlace(entry, hello, now, &effects)) {
      entry.line = std::move(line);
      entry.peer = peer;
      entry.set_relay(hello.relay);
      entry.connected = true;
      seat = Seat(std::move(found), ++entry.stream);
    } else {
      seat = errors::DuplicateAgent(hello.node);
    }
  }
  CarryOut(std::move(effects));
  return seat;
}

// Whether the new stream may have the place: not if the process that has it is younger and heard.
bool Registry::TakePlace(Entry& entry, const SenderHello& hello, absl::Duration now,
                         Effects* effects) {
  const uint64_t instance = HashOf(hello.instance);
  const absl::Duration began = now - hello.uptime;
  const bool other = entry.instance != 0 && entry.instance != instance;
  const auto old_line = entry.connected ? entry.line.lock() : nullptr;
  const bool both = other && old_line != nullptr && entry.presence() == v1::PRESENCE_ONLINE;
  if (both) {
    entry.double_since = now;
    entry.set_duplicate_agent(true);
    figures_->duplicate_agents.Add();
    Note(entry, "two processes beat with one identity: the older one was told to end", effects);
    effects->changed.push_back(entry.shared_from_this());
    if (began < entry.began) return false;
    effects->ends.emplace_back(old_line, errors::DuplicateAgent(hello.node));
  } else if (old_line != nullptr) {
    effects->ends.emplace_back(old_line, absl::CancelledError("a newer stream replaced this one"));
  }
  if (other) {
    entry.took_over = !both && entry.presence() != v1::PRESENCE_OFFLINE;
    entry.sequence = -1;
  }
  if (entry.instance != instance) entry.began = began;
  entry.instance = instance;
  entry.boot = HashOf(hello.boot);
  return true;
}

bool Registry::IsNews(const Seat& seat, int64_t sequence, Answer* answer) {
  Entry& entry = *seat.entry_;
  Shard& shard = ShardOf(entry.uri(), entry.node());
  MutexLock lock(shard.mutex);
  if (sequence > entry.sequence) return true;
  figures_->out_of_order.Add();
  *answer = {entry.sequence, entry.interval()};
  return false;
}

template <typename Prepare>
Registry::Answer Registry::Take(const Seat& seat, Prepare prepare) {
  Entry& entry = *seat.entry_;
  const absl::Duration now = clock_.MonotonicNow();
  Effects effects;
  Answer answer;
  {
    Shard& shard = ShardOf(entry.uri(), entry.node());
    MutexLock lock(shard.mutex);
    answer = prepare(entry) ? Heard(shard, entry, now, &effects)
                            : Answer{entry.sequence, entry.interval()};
  }
  CarryOut(std::move(effects));
  return answer;
}

Registry::Answer Registry::Beat(const Seat& seat, int64_t sequence, absl::Duration clock_skew) {
  return Take(seat, [&](Entry& entry) {
    if (entry.stream != seat.number_) return false;
    entry.sequence = std::max(entry.sequence, sequence);
    entry.set_clock_skew(clock_skew);
    return true;
  });
}

Registry::Answer Registry::SendHeartbeat(const Seat& seat) {
  return Take(seat, [](const Entry&) { return true; });
}

absl::StatusOr<Registry::Seat> Registry::Visit(const std::string& uri, const std::string& node) {
  Shard& shard = ShardOf(uri, node);
  MutexLock lock(shard.mutex);
  ASSIGN_OR_RETURN(auto found, FindOrAdd(shard, uri, node));
  const uint32_t number = found->stream;
  return Seat(std::move(found), number);
}

Registry::Answer Registry::Heard(Shard& shard, Entry& entry, absl::Duration now, Effects* effects) {
  shard.mutex.AssertHeld();
  figures_->taken.Add();
  const absl::Duration silence = now - entry.last_seen();
  entry.set_last_seen(now);
  entry.set_interval(Interval());
  entry.changed = true;
  entry.looked = entry.unanswered = false;
  const Evidence evidence = entry.took_over                            ? Evidence::kRestarted
                            : entry.evidence() == Evidence::kRestarted ? Evidence::kRestarted
                                                                       : Evidence::kNone;
  const bool new_evidence = evidence != entry.evidence();
  entry.set_evidence(evidence);
  if (entry.took_over) Note(entry, "a new process took over without a goodbye", effects);
  entry.took_over = false;
  if (!entry.listed && shard.entries.insert(entry.shared_from_this()).second) {
    entry.listed = true;
    ++senders_;
  }
  const v1::Presence before = entry.presence();
  if (before != v1::PRESENCE_ONLINE) {
    Turn(entry, v1::PRESENCE_ONLINE, now,
         before == v1::PRESENCE_UNSPECIFIED
             ? "first heartbeat"
             : absl::StrCat("heard again after ",
                            absl::FormatDuration(absl::Trunc(silence, absl::Seconds(1)))),
         effects);
    if (entry.listed) shard.wheel.Add(entry, TickAfter(now + entry.LookAfter()));
  } else if (new_evidence) {
    effects->changed.push_back(entry.shared_from_this());
  }
  return {entry.sequence, entry.interval()};
}

void Registry::Leave(const Seat& seat) {
  Entry& entry = *seat.entry_;
  Shard& shard = ShardOf(entry.uri(), entry.node());
  MutexLock lock(shard.mutex);
  if (entry.presence() == v1::PRESENCE_UNSPECIFIED && !entry.connected) Forget(shard, entry);
}

void Registry::Goodbye(const Seat& seat) {
  Entry& entry = *seat.entry_;
  const absl::Duration now = clock_.MonotonicNow();
  Effects effects;
  {
    Shard& shard = ShardOf(entry.uri(), entry.node());
    MutexLock lock(shard.mutex);
    if (entry.stream != seat.number_ || !entry.listed) return;
    entry.set_evidence(Evidence::kNone);
    entry.connected = false;
    Turn(entry, v1::PRESENCE_OFFLINE, now, "goodbye", &effects);
    shard.wheel.Add(entry, TickAfter(now + options_.forget_after));
  }
  CarryOut(std::move(effects));
}

std::shared_ptr<const Sender> Registry::Find(const std::string& uri,
                                             const std::string& node) const {
  Shard& shard = ShardOf(uri, node);
  MutexLock lock(shard.mutex);
  const auto it = shard.entries.find(Shard::Key{uri, node});
  return it == shard.entries.end() ? nullptr : *it;
}

void Registry::Excuse(const std::shared_ptr<const Sender>& sender) {
  Shard& shard = ShardOf(sender->uri(), sender->node());
  const absl::Duration now = clock_.MonotonicNow();
  Effects effects;
  {
    MutexLock lock(shard.mutex);
    const auto it = shard.entries.find(Shard::Key{sender->uri(), sender->node()});
    if (it == shard.entries.end() || (*it)->connected) return;
    Entry& entry = **it;
    if (entry.presence() == v1::PRESENCE_OFFLINE) return;
    entry.set_evidence(Evidence::kNone);
    Turn(entry, v1::PRESENCE_OFFLINE, now, "all that it did is done", &effects);
    shard.wheel.Add(entry, TickAfter(now + options_.forget_after));
  }
  CarryOut(std::move(effects));
}

void Registry::Closed(const Seat& seat, bool by_peer) {
  Entry& entry = *seat.entry_;
  Shard& shard = ShardOf(entry.uri(), entry.node());
  {
    MutexLock lock(shard.mutex);
    if (entry.stream != seat.number_) return;
    const bool was_connected = std::exchange(entry.connected, false);
    if (entry.presence() == v1::PRESENCE_UNSPECIFIED) return Forget(shard, entry);
    if (!by_peer || !was_connected || entry.presence() == v1::PRESENCE_OFFLINE) return;
  }
  MutexLock lock(closed_mutex_);
  closed_.emplace_back(clock_.MonotonicNow(), seat.entry_);
}

void Registry::Revoked(const Seat& seat) {
  Entry& entry = *seat.entry_;
  Shard& shard = ShardOf(entry.uri(), entry.node());
  Effects effects;
  {
    MutexLock lock(shard.mutex);
    if (entry.stream != seat.number_ || entry.presence() == v1::PRESENCE_OFFLINE) return;
    entry.connected = false;
    if (entry.presence() == v1::PRESENCE_UNSPECIFIED) return Forget(shard, entry);
    entry.peer = TcpPeer();  // what becomes of its connection says nothing of it any more
    entry.set_evidence(Evidence::kRevoked);
    effects.changed.push_back(entry.shared_from_this());
    Note(entry, "its certificate was revoked", &effects);
  }
  CarryOut(std::move(effects));
}

void Registry::Forget(Shard& shard, Entry& entry) {
  shard.mutex.AssertHeld();
  TimingWheel::Remove(entry);
  if (!entry.listed) return;
  entry.listed = false;
  --senders_;
  if (entry.doubted()) --doubted_;
  if (entry.presence() != v1::PRESENCE_UNSPECIFIED) {
    --present_[static_cast<size_t>(entry.presence())];
  }
  shard.entries.erase(entry.shared_from_this());
}

void Registry::Turn(Entry& entry, v1::Presence to, absl::Duration now, std::string detail,
                    Effects* effects) {
  const v1::Presence from = entry.presence();
  if (from != v1::PRESENCE_UNSPECIFIED) --present_[static_cast<size_t>(from)];
  ++present_[static_cast<size_t>(to)];
  if (to != v1::PRESENCE_UNKNOWN && entry.doubted()) {
    entry.set_doubted(false);
    --doubted_;
  }
  entry.set_presence(to, now);
  entry.changed = true;
  figures_->transitions.With({v1::Presence_Name(to)}).Add();
  effects->changed.push_back(entry.shared_from_this());
  Note(entry, std::move(detail), effects);
}

void Registry::Note(const Entry& entry, std::string detail, Effects* effects) const {
  v1::NodeEvent event;
  ToProto(clock_.Now(), event.mutable_time());
  event.set_presence(entry.presence());
  event.set_detail(std::move(detail));
  effects->events.emplace_back(entry.node(), std::move(event));
}

void Registry::CarryOut(Effects effects) {
  for (const auto& sender : effects.changed) listener_.PresenceChanged(sender);
  for (auto& [node, event] : effects.events) journal_.Happened(node, std::move(event));
  for (const auto& line : effects.probes) line->Probe();
  for (const auto& [line, why] : effects.ends) line->End(why);
}

void Registry::EndAll(const absl::Status& why) {
  Effects effects;
  for (size_t i = 0; i < kShards; ++i) {
    MutexLock lock(shards_[i].mutex);
    for (const auto& entry : shards_[i].entries) {
      if (!entry->connected) continue;
      if (auto line = entry->line.lock()) effects.ends.emplace_back(std::move(line), why);
    }
  }
  CarryOut(std::move(effects));
}

}  // namespace muster
