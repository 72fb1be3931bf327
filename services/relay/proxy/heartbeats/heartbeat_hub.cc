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

// One message upward.
constexpr int kMaxEntries = 500;
constexpr size_t kMaxBytes = size_t{1} << 20;

// How often it is looked whether a sender has signed anew.
constexpr absl::Duration kStatements = absl::Seconds(30);

bool Appends(const v1::Activity& activity) {
  const v1::ReportProgressRequest& progress = activity.progress();
  return progress.append_totals() || progress.append_completed() != 0 ||
         progress.append_failing_size() > 0;
}

bool SamePair(const v1::ResultKey& a, const v1::ResultKey& b) {
  return a.run() == b.run() && a.plugin() == b.plugin();
}

void MergeActivity(const v1::Activity& news, v1::Activity* before) {
  if (news.phase() != v1::PHASE_UNSPECIFIED) before->set_phase(news.phase());
  before->set_message(news.message());
  if (news.has_progress()) *before->mutable_progress() = news.progress();
  if (news.has_fault()) {
    *before->mutable_fault() = news.fault();
  } else {
    before->clear_fault();
  }
}

}  // namespace

void MergeHeartbeat(const v1::StreamHeartbeatsRequest& news, v1::StreamHeartbeatsRequest* before) {
  before->set_sequence(news.sequence());
  *before->mutable_uptime() = news.uptime();
  *before->mutable_time() = news.time();
  if (news.goodbye()) before->set_goodbye(true);
  for (const v1::Activity& activity : news.activities()) {
    auto& list = *before->mutable_activities();
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
  std::weak_ptr<HeartbeatSender> child;
  v1::StreamHeartbeatsRequest all;   // what it would say in a first message now
  v1::StreamHeartbeatsRequest news;  // what has not gone up
  bool has_news = false;             // `news` is something
  bool introduced = false;
  bool queued = false;    // in news_
  bool heard = false;     // since the last list
  std::string statement;  // that went up on this stream
};

HeartbeatHub::HeartbeatHub(std::string relay, StatementOf statement_of, const Clock& clock,
                           Metrics& metrics)
    : relay_(std::move(relay)),
      statement_of_(std::move(statement_of)),
      clock_(clock),
      beats_(
          metrics.AddCounter("muster_relay_heartbeats_total", "Heartbeats that came from below.")),
      sent_bytes_(metrics.AddCounter("muster_relay_heartbeat_bytes_total",
                                     "Bytes that went up for them.")) {
  metrics.AddSampledGauge("muster_relay_senders", "Who beats through this relay now.",
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
                                          std::weak_ptr<HeartbeatSender> child) {
  ASSIGN_OR_RETURN(auto uri, ToUri(caller->identity));
  auto sender = std::make_unique<Sender>();
  sender->caller = std::move(caller);
  sender->uri = std::move(uri);
  sender->child = std::move(child);
  sender->all = first;
  beats_.Add();
  MutexLock lock(mutex_);
  if (senders_.size() >= kMaxSenders) return errors::TooManySenders(kMaxSenders);
  // Numbers go round; one is free, since there are far fewer senders.
  do {
    last_id_ = last_id_ == INT32_MAX ? 1 : last_id_ + 1;
  } while (senders_.contains(last_id_));
  sender->id = last_id_;
  Sender& added = *(senders_[last_id_] = std::move(sender));
  Queue(added);
  return added.id;
}

void HeartbeatHub::Queue(Sender& sender) {
  if (std::exchange(sender.queued, true)) return;
  news_.push_back(sender.id);
}

void HeartbeatHub::HandleHeartbeat(int32_t id, const v1::StreamHeartbeatsRequest& beat) {
  beats_.Add();
  MutexLock lock(mutex_);
  const auto it = senders_.find(id);
  if (it == senders_.end()) return;
  Sender& sender = *it->second;
  sender.heard = true;
  MergeHeartbeat(beat, &sender.all);
  // What was appended is told once; said anew to another status service it would count twice.
  auto& all = *sender.all.mutable_activities();
  all.erase(std::remove_if(all.begin(), all.end(), Appends), all.end());
  if (beat.activities_size() == 0 && !beat.goodbye()) {
    if (sender.has_news) sender.news.set_sequence(beat.sequence());
    return;
  }
  MergeHeartbeat(beat, &sender.news);
  sender.has_news = true;
  Queue(sender);
}

void HeartbeatHub::Remove(int32_t id) {
  MutexLock lock(mutex_);
  const auto it = senders_.find(id);
  if (it == senders_.end()) return;
  Sender& sender = *it->second;
  sender.child.reset();
  if (sender.all.goodbye() && sender.queued) return;  // it goes up, and is forgotten then
  if (sender.introduced && !sender.all.goodbye()) gone_.push_back(id);
  senders_.erase(it);
}

void HeartbeatHub::EndAll(const absl::Status& why) {
  std::vector<std::shared_ptr<HeartbeatSender>> children;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, sender] : senders_) {
      if (auto child = sender->child.lock()) children.push_back(std::move(child));
    }
  }
  for (const auto& child : children) child->End(why);
}

void HeartbeatHub::Restart() {
  MutexLock lock(mutex_);
  named_ = false;
  gone_.clear();
  news_.clear();
  for (auto& [id, sender] : senders_) {
    sender->introduced = sender->queued = false;
    sender->statement.clear();
    Queue(*sender);
  }
}

// False if there is nothing to be said of it, or nobody may speak for it any more.
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
    // What was appended before anything went up is in the news alone.
    if (sender.has_news) MergeHeartbeat(sender.news, entry->mutable_beat());
    sender.introduced = true;
  } else if (sender.has_news) {
    *entry->mutable_beat() = std::move(sender.news);
  } else {
    return entry->attach_statement().empty() ? false : true;
  }
  sender.news = v1::StreamHeartbeatsRequest();
  sender.has_news = sender.heard = false;
  return true;
}

void HeartbeatHub::AddHeard(v1::RelayHeartbeatsRequest* request) {
  const absl::Duration now = clock_.MonotonicNow();
  const bool statements = now - statements_at_ >= kStatements;
  if (statements) statements_at_ = now;
  if (now - heard_at_ < interval_ / 2) return;
  heard_at_ = now;
  for (auto& [id, sender] : senders_) {
    if (!sender->introduced) continue;
    if (std::exchange(sender->heard, false)) request->add_heard_ids(id);
    if (!statements) continue;
    const auto statement = statement_of_(*sender->caller);
    if (statement.ok() && *statement != sender->statement) Queue(*sender);
  }
}

std::optional<v1::RelayHeartbeatsRequest> HeartbeatHub::Next() {
  MutexLock lock(mutex_);
  v1::RelayHeartbeatsRequest request;
  while (!gone_.empty() && request.senders_size() < kMaxEntries) {
    v1::RelayHeartbeatsRequest::Sender& entry = *request.add_senders();
    entry.set_id(gone_.front());
    entry.set_ended(true);
    gone_.pop_front();
  }
  size_t bytes = 0;
  // Who cannot be introduced yet, since its statement is not there, is tried the next time.
  std::vector<int32_t> later;
  while (!news_.empty() && request.senders_size() < kMaxEntries && bytes < kMaxBytes) {
    const auto it = senders_.find(news_.front());
    news_.pop_front();
    if (it == senders_.end()) continue;
    Sender& sender = *it->second;
    sender.queued = false;
    v1::RelayHeartbeatsRequest::Sender entry;
    const bool said = Fill(sender, &entry);
    if (said) {
      bytes += entry.ByteSizeLong();
      *request.add_senders() = std::move(entry);
    }
    if (sender.all.goodbye() && sender.child.expired()) {
      senders_.erase(it);
    } else if (!said && !sender.introduced) {
      later.push_back(sender.id);
    }
  }
  for (const int32_t id : later) Queue(*senders_.at(id));
  AddHeard(&request);
  if (named_ && request.senders_size() == 0 && request.heard_ids_size() == 0) return std::nullopt;
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
      if (auto child = it->second->child.lock()) ends.emplace_back(std::move(child), why);
      senders_.erase(it);
    }
    for (const int32_t id : response.probes()) {
      const auto it = senders_.find(id);
      if (it == senders_.end()) continue;
      if (auto child = it->second->child.lock()) probes.push_back(std::move(child));
    }
  }
  for (const auto& [child, why] : ends) child->End(why);
  for (const auto& child : probes) child->Probe();
}

}  // namespace muster
