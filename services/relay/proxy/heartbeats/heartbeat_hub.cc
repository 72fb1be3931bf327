#include "services/relay/proxy/heartbeats/heartbeat_hub.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/rpc/limits.h"
#include "services/relay/proxy/heartbeats/heartbeat_merge.h"

namespace muster {
namespace {

constexpr size_t kMaxSenders = 100'000;

// The limits on one message.
constexpr int kMaxEntries = 500;
constexpr size_t kMaxBytes = size_t{1} << 20;

// The time between two searches for new statements of the senders.
constexpr absl::Duration kStatements = absl::Seconds(30);

// The code of STATUS_NOT_READY: the status service has just started.
constexpr int kNotReady = static_cast<int>(absl::StatusCode::kUnavailable);

// Goodbyes of one identity that are kept: as many as a sender has streams.
constexpr size_t kMaxGoodbyes = 64;

// An entry has at most two lists of activities (heartbeat_merge.h), which are kMaxBytes together,
// with names and a statement. The list of heartbeats is in addition, five bytes for each sender.
static_assert(kMaxBytes + (size_t{64} << 10) + 5 * kMaxSenders < kMaxSmallMessageBytes);

}  // namespace

struct HeartbeatHub::Sender {
  int32_t id = 0;
  std::shared_ptr<const Caller> caller;
  std::string uri;
  std::weak_ptr<HeartbeatSender> stream;
  // The content of a first message now, without appended progress.
  v1::StreamHeartbeatsRequest all;
  v1::StreamHeartbeatsRequest unsent;  // not sent upstream yet
  bool has_unsent = false;             // `unsent` has content
  // Appended progress that was sent on this stream, and not confirmed.
  v1::StreamHeartbeatsRequest unconfirmed;
  bool is_unconfirmed = false;  // in unconfirmed_
  bool introduced = false;
  bool queued = false;          // in unsent_
  bool received = false;        // a heartbeat, since the last list was sent
  std::string statement;        // the last one; the status service checks its end
  bool statement_sent = false;  // on this stream

  // Returns whether its stream has ended with a goodbye.
  bool ended() const { return all.goodbye() && stream.expired(); }
};

HeartbeatHub::HeartbeatHub(std::string relay, StatementOf statement_of, const Clock& clock,
                           Metrics& metrics)
    : relay_(std::move(relay)),
      statement_of_(std::move(statement_of)),
      clock_(clock),
      received_(metrics.AddCounter("muster_relay_heartbeats_total",
                                   "Heartbeats received from children.")),
      sent_bytes_(metrics.AddCounter("muster_relay_heartbeat_bytes_total",
                                     "Bytes of heartbeats sent upstream.")) {
  metrics.AddSampledGauge("muster_relay_senders", "Senders of heartbeats that are connected now.",
                          [this] { return static_cast<double>(senders()); });
}

HeartbeatHub::~HeartbeatHub() = default;

size_t HeartbeatHub::senders() const {
  MutexLock lock(mutex_);
  return senders_.size();
}

absl::Duration HeartbeatHub::interval() const {
  MutexLock lock(mutex_);
  return interval_;
}

absl::StatusOr<int32_t> HeartbeatHub::Add(std::shared_ptr<const Caller> caller,
                                          const v1::StreamHeartbeatsRequest& first,
                                          std::weak_ptr<HeartbeatSender> stream) {
  ASSIGN_OR_RETURN(auto uri, ToUri(caller->identity));
  auto sender = std::make_unique<Sender>();
  sender->caller = std::move(caller);
  sender->uri = std::move(uri);
  sender->stream = std::move(stream);
  // It may be detached when the status service is back, but its goodbye has to be sent.
  sender->statement = statement_of_(*sender->caller).value_or("");
  sender->all = first;
  sender->all.clear_activities();
  MergeHeartbeat(first, &sender->all);
  RemoveAppendedProgress(&sender->all);
  MergeHeartbeat(AppendedProgress(first), &sender->unsent);
  sender->has_unsent = sender->unsent.activities_size() > 0;
  received_.Add();
  MutexLock lock(mutex_);
  if (senders_.size() >= kMaxSenders) return errors::TooManySenders(kMaxSenders);
  // Numbers wrap around. One is free, because there are far fewer senders.
  do {
    last_id_ = last_id_ == INT32_MAX ? 1 : last_id_ + 1;
  } while (senders_.contains(last_id_));
  sender->id = last_id_;
  Sender& added = *(senders_[last_id_] = std::move(sender));
  Enqueue(added);
  return added.id;
}

void HeartbeatHub::Enqueue(Sender& sender) {
  if (std::exchange(sender.queued, true)) return;
  unsent_.push_back(sender.id);
}

void HeartbeatHub::HandleHeartbeat(int32_t id, const v1::StreamHeartbeatsRequest& heartbeat) {
  received_.Add();
  MutexLock lock(mutex_);
  const auto it = senders_.find(id);
  if (it == senders_.end()) return;
  Sender& sender = *it->second;
  sender.received = true;
  MergeHeartbeat(heartbeat, &sender.all);
  // Appended progress is in `unsent` only: the status service would count it twice.
  RemoveAppendedProgress(&sender.all);
  if (heartbeat.activities_size() == 0 && !heartbeat.goodbye()) {
    if (sender.has_unsent) sender.unsent.set_sequence(heartbeat.sequence());
    return;
  }
  MergeHeartbeat(heartbeat, &sender.unsent);
  sender.has_unsent = true;
  Enqueue(sender);
}

void HeartbeatHub::Remove(int32_t id) {
  MutexLock lock(mutex_);
  const auto it = senders_.find(id);
  if (it == senders_.end()) return;
  Sender& sender = *it->second;
  sender.stream.reset();
  if (sender.all.goodbye() && (sender.queued || sender.is_unconfirmed)) {
    return KeepGoodbye(sender);
  }
  if (sender.introduced && !sender.all.goodbye()) ended_.push_back(id);
  Erase(it);
}

// A node may send goodbyes without end while the status service is unreachable.
void HeartbeatHub::KeepGoodbye(const Sender& sender) {
  std::deque<int32_t>& kept = goodbyes_[sender.uri];
  kept.push_back(sender.id);
  if (kept.size() <= kMaxGoodbyes) return;
  const auto oldest = senders_.find(kept.front());
  if (oldest->second->introduced) ended_.push_back(oldest->first);
  Erase(oldest);
}

void HeartbeatHub::Erase(Senders::iterator sender) {
  const auto kept = goodbyes_.find(sender->second->uri);
  if (kept != goodbyes_.end()) {
    std::erase(kept->second, sender->first);
    if (kept->second.empty()) goodbyes_.erase(kept);
  }
  senders_.erase(sender);
}

void HeartbeatHub::Restart() {
  MutexLock lock(mutex_);
  named_ = false;
  ended_.clear();
  unsent_.clear();
  unconfirmed_.clear();
  for (auto& [id, sender] : senders_) {
    sender->queued = false;
    Reintroduce(*sender);
    Enqueue(*sender);
  }
}

void HeartbeatHub::Reintroduce(Sender& sender) {
  sender.introduced = sender.statement_sent = false;
  if (!std::exchange(sender.is_unconfirmed, false)) return;
  v1::StreamHeartbeatsRequest again = std::exchange(sender.unconfirmed, {});
  MergeHeartbeat(sender.unsent, &again);
  sender.unsent = std::move(again);
  sender.has_unsent = true;
}

std::optional<HeartbeatHub::Entry> HeartbeatHub::MakeEntry(Sender& sender) {
  auto statement = statement_of_(*sender.caller);
  if (statement.ok() && *statement != sender.statement) {
    sender.statement = *std::move(statement);
    sender.statement_sent = false;
  }
  if (sender.statement.empty()) return std::nullopt;
  if (sender.introduced && sender.statement_sent && !sender.has_unsent) return std::nullopt;
  Entry entry;
  entry.set_id(sender.id);
  if (!sender.statement_sent) entry.set_attach_statement(sender.statement);
  if (!sender.introduced) {
    entry.set_uri(sender.uri);
    *entry.mutable_beat() = sender.all;
    AddAppendedProgress(sender.unsent, entry.mutable_beat());
  } else if (sender.has_unsent) {
    *entry.mutable_beat() = sender.unsent;
  }
  return entry;
}

void HeartbeatHub::MarkSent(Sender& sender, bool has_beat) {
  sender.introduced = sender.statement_sent = true;
  if (!has_beat) return;
  const v1::StreamHeartbeatsRequest appended = AppendedProgress(sender.unsent);
  MergeHeartbeat(appended, &sender.unconfirmed);
  sender.unsent = v1::StreamHeartbeatsRequest();
  sender.has_unsent = sender.received = false;
  if (appended.activities_size() == 0 && !sender.all.goodbye()) return;
  if (!std::exchange(sender.is_unconfirmed, true)) unconfirmed_.push_back(sender.id);
}

void HeartbeatHub::Confirm() {
  for (const int32_t id : std::exchange(unconfirmed_, {})) {
    const auto it = senders_.find(id);
    if (it == senders_.end() || !it->second->is_unconfirmed) continue;
    Sender& sender = *it->second;
    sender.is_unconfirmed = false;
    sender.unconfirmed = v1::StreamHeartbeatsRequest();
    if (sender.ended()) Erase(it);
  }
}

bool HeartbeatHub::AddReceived(v1::RelayHeartbeatsRequest* request) {
  const absl::Duration now = clock_.MonotonicNow();
  const bool statements = now - statements_at_ >= kStatements;
  if (statements) statements_at_ = now;
  if (now - list_sent_at_ < interval_ / 2) return false;
  list_sent_at_ = now;
  for (auto& [id, sender] : senders_) {
    if (!sender->introduced) continue;
    if (std::exchange(sender->received, false)) request->add_heard_ids(id);
    if (!statements) continue;
    const auto statement = statement_of_(*sender->caller);
    if (statement.ok() && *statement != sender->statement) Enqueue(*sender);
  }
  return true;
}

void HeartbeatHub::AddEnded(v1::RelayHeartbeatsRequest* request) {
  while (!ended_.empty() && request->senders_size() < kMaxEntries) {
    Entry& entry = *request->add_senders();
    entry.set_id(ended_.front());
    entry.set_ended(true);
    ended_.pop_front();
  }
}

void HeartbeatHub::AddQueued(v1::RelayHeartbeatsRequest* request) {
  size_t bytes = 0;
  // Senders without a statement are introduced by a later message.
  std::vector<int32_t> later;
  while (!unsent_.empty() && request->senders_size() < kMaxEntries) {
    const auto it = senders_.find(unsent_.front());
    std::optional<Entry> entry;
    if (it != senders_.end()) entry = MakeEntry(*it->second);
    if (entry) {
      const size_t size = entry->ByteSizeLong();
      if (bytes > 0 && bytes + size > kMaxBytes) break;  // the next message has it
      bytes += size;
    }
    unsent_.pop_front();
    if (it == senders_.end()) continue;
    Sender& sender = *it->second;
    sender.queued = false;
    if (entry) {
      MarkSent(sender, entry->has_beat());
      *request->add_senders() = *std::move(entry);
    } else if (sender.ended()) {
      Erase(it);
    } else if (!sender.introduced) {
      later.push_back(sender.id);
    }
  }
  for (const int32_t id : later) Enqueue(*senders_.at(id));
}

std::optional<v1::RelayHeartbeatsRequest> HeartbeatHub::Next() {
  MutexLock lock(mutex_);
  v1::RelayHeartbeatsRequest request;
  AddEnded(&request);
  AddQueued(&request);
  // An empty list is sent too: it shows that the relay works, and that its senders are silent.
  if (!AddReceived(&request) && named_ && request.senders_size() == 0) return std::nullopt;
  if (!std::exchange(named_, true)) request.set_relay(relay_);
  sent_bytes_.Add(static_cast<double>(request.ByteSizeLong()));
  return request;
}

void HeartbeatHub::HandleResponse(const v1::RelayHeartbeatsResponse& response) {
  std::vector<std::pair<std::shared_ptr<HeartbeatSender>, absl::Status>> ends;
  std::vector<std::shared_ptr<HeartbeatSender>> probes;
  {
    MutexLock lock(mutex_);
    const absl::Duration interval = absl::Seconds(response.interval().seconds()) +
                                    absl::Nanoseconds(response.interval().nanos());
    if (interval > absl::ZeroDuration()) interval_ = interval;
    for (const auto& refused : response.refused()) {
      const auto it = senders_.find(refused.id());
      if (it == senders_.end()) continue;
      Sender& sender = *it->second;
      if (sender.all.goodbye() && refused.code() == kNotReady) {
        Reintroduce(sender);
        // The next process of the node comes after it.
        if (!std::exchange(sender.queued, true)) unsent_.push_front(sender.id);
        continue;
      }
      absl::Status why =
          MakeError(static_cast<absl::StatusCode>(refused.code()), refused.detail().reason(),
                    refused.message(), refused.detail().next_step());
      if (refused.detail().has_retry_after()) {
        why = WithRetryAfter(why, absl::Seconds(refused.detail().retry_after().seconds()));
      }
      if (auto child = sender.stream.lock()) ends.emplace_back(std::move(child), why);
      Erase(it);
    }
    Confirm();
    for (const int32_t id : response.probes()) {
      const auto it = senders_.find(id);
      if (it == senders_.end()) continue;
      if (auto child = it->second->stream.lock()) probes.push_back(std::move(child));
    }
  }
  for (const auto& [child, why] : ends) child->End(why);
  for (const auto& child : probes) child->Probe();
}

}  // namespace muster
