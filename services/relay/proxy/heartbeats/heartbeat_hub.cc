#include "services/relay/proxy/heartbeats/heartbeat_hub.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/heartbeats.h"

namespace muster {
namespace {

constexpr size_t kMaxSenders = 100'000;
constexpr int kMaxActivities = 1000;

// The limits on one message.
constexpr int kMaxEntries = 500;
constexpr size_t kMaxBytes = size_t{1} << 20;

// The time between two searches for new statements of the senders.
constexpr absl::Duration kStatements = absl::Seconds(30);

bool Appends(const v1::Activity& activity) {
  const v1::ReportProgressRequest& progress = activity.progress();
  return progress.append_totals() || progress.append_completed() != 0 ||
         progress.append_failing_size() > 0;
}

bool SamePair(const v1::ResultKey& a, const v1::ResultKey& b) {
  return a.run() == b.run() && a.plugin() == b.plugin();
}

void MergeActivity(const v1::Activity& activity, v1::Activity* unsent) {
  if (activity.phase() != v1::PHASE_UNSPECIFIED) unsent->set_phase(activity.phase());
  unsent->set_message(activity.message());
  if (activity.has_progress()) *unsent->mutable_progress() = activity.progress();
  if (activity.has_fault()) {
    *unsent->mutable_fault() = activity.fault();
  } else {
    unsent->clear_fault();
  }
}

}  // namespace

void MergeHeartbeat(const v1::StreamHeartbeatsRequest& heartbeat,
                    v1::StreamHeartbeatsRequest* unsent) {
  unsent->set_sequence(heartbeat.sequence());
  *unsent->mutable_uptime() = heartbeat.uptime();
  *unsent->mutable_time() = heartbeat.time();
  if (heartbeat.goodbye()) unsent->set_goodbye(true);
  for (const v1::Activity& activity : heartbeat.activities()) {
    auto& list = *unsent->mutable_activities();
    const auto same = std::find_if(list.rbegin(), list.rend(), [&](const v1::Activity& known) {
      return SamePair(known.key(), activity.key());
    });
    if (same != list.rend() && !Appends(*same) && !Appends(activity)) {
      MergeActivity(activity, &*same);
    } else if (list.size() < kMaxActivities) {
      *list.Add() = activity;
    }
  }
}

struct HeartbeatHub::Sender {
  int32_t id = 0;
  std::shared_ptr<const Caller> caller;
  std::string uri;
  std::weak_ptr<HeartbeatSender> stream;
  v1::StreamHeartbeatsRequest all;     // the content of a first message now
  v1::StreamHeartbeatsRequest unsent;  // not sent upstream yet
  bool has_unsent = false;             // `unsent` has content
  bool introduced = false;
  bool queued = false;    // in unsent_
  bool received = false;  // a heartbeat, since the last list was sent
  std::string statement;  // as sent on this stream
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
  sender->all = first;
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
  // Appended progress is sent once: a second status service would count it twice.
  auto& all = *sender.all.mutable_activities();
  all.erase(std::remove_if(all.begin(), all.end(), Appends), all.end());
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
  if (sender.all.goodbye() && sender.queued) return;  // it is removed when it has been sent
  if (sender.introduced && !sender.all.goodbye()) ended_.push_back(id);
  senders_.erase(it);
}

void HeartbeatHub::Restart() {
  MutexLock lock(mutex_);
  named_ = false;
  ended_.clear();
  unsent_.clear();
  for (auto& [id, sender] : senders_) {
    sender->introduced = sender->queued = false;
    sender->statement.clear();
    Enqueue(*sender);
  }
}

// Returns false if there is nothing to send, or no statement permits it.
bool HeartbeatHub::Fill(Sender& sender, v1::RelayHeartbeatsRequest::Sender* entry) {
  entry->set_id(sender.id);
  auto statement = statement_of_(*sender.caller);
  if (statement.ok() && *statement != sender.statement) {
    entry->set_attach_statement(*statement);
    sender.statement = *std::move(statement);
  }
  if (!sender.introduced) {
    if (sender.statement.empty()) return false;
    entry->set_uri(sender.uri);
    *entry->mutable_beat() = sender.all;
    // Appended progress is in `unsent` only.
    if (sender.has_unsent) MergeHeartbeat(sender.unsent, entry->mutable_beat());
    sender.introduced = true;
  } else if (sender.has_unsent) {
    *entry->mutable_beat() = std::move(sender.unsent);
  } else {
    return entry->attach_statement().empty() ? false : true;
  }
  sender.unsent = v1::StreamHeartbeatsRequest();
  sender.has_unsent = sender.received = false;
  return true;
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

std::optional<v1::RelayHeartbeatsRequest> HeartbeatHub::Next() {
  MutexLock lock(mutex_);
  v1::RelayHeartbeatsRequest request;
  while (!ended_.empty() && request.senders_size() < kMaxEntries) {
    v1::RelayHeartbeatsRequest::Sender& entry = *request.add_senders();
    entry.set_id(ended_.front());
    entry.set_ended(true);
    ended_.pop_front();
  }
  size_t bytes = 0;
  // Senders without a statement are introduced by a later message.
  std::vector<int32_t> later;
  while (!unsent_.empty() && request.senders_size() < kMaxEntries && bytes < kMaxBytes) {
    const auto it = senders_.find(unsent_.front());
    unsent_.pop_front();
    if (it == senders_.end()) continue;
    Sender& sender = *it->second;
    sender.queued = false;
    v1::RelayHeartbeatsRequest::Sender entry;
    const bool filled = Fill(sender, &entry);
    if (filled) {
      bytes += entry.ByteSizeLong();
      *request.add_senders() = std::move(entry);
    }
    if (sender.all.goodbye() && sender.stream.expired()) {
      senders_.erase(it);
    } else if (!filled && !sender.introduced) {
      later.push_back(sender.id);
    }
  }
  for (const int32_t id : later) Enqueue(*senders_.at(id));
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
      absl::Status why =
          MakeError(static_cast<absl::StatusCode>(refused.code()), refused.detail().reason(),
                    refused.message(), refused.detail().next_step());
      if (refused.detail().has_retry_after()) {
        why = WithRetryAfter(why, absl::Seconds(refused.detail().retry_after().seconds()));
      }
      if (auto child = it->second->stream.lock()) ends.emplace_back(std::move(child), why);
      senders_.erase(it);
    }
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
