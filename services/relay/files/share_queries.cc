#include "services/relay/files/share_queries.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/runs.h"
#include "services/relay/files/share_errors.h"

namespace muster {
namespace {

constexpr size_t kMaxWaiting = 64;
constexpr size_t kMaxQueue = 64;
constexpr size_t kIdBytes = 16;
constexpr absl::Duration kAnswerWithin = absl::Seconds(10);

}  // namespace

ShareQueries::ShareQueries(ShareParts parts, const LocalShareIndex& local_index,
                           TimerService& timers, Executor& disk)
    : parts_(std::move(parts)),
      local_index_(local_index),
      executor_({"share-ask", 1, kMaxQueue}),
      expire_(timers, disk, [this] { ExpireDue(); }) {}

void ShareQueries::Ask(v1::ShareQuery query, Done done) {
  const auto entry = parts_.tree.Find(query.relay());
  if (!entry || !entry->is_relay) return done(errors::RelayNotInTree(query.relay()));
  const auto link = parts_.tree.Route(query.relay());
  if (link == nullptr) return done(errors::RelayNotReached(query.relay(), "it is not attached"));
  query.set_id(RandomHex(kIdBytes));
  bool full = false;
  {
    MutexLock lock(mutex_);
    full = waiting_.size() >= kMaxWaiting;
    if (!full) {
      waiting_[query.id()] = {query.relay(), done};
      due_.Set(query.id(), parts_.clock.MonotonicNow() + kAnswerWithin);
      if (due_.size() == 1) ScheduleExpiry();
    }
  }
  if (full) return done(errors::Overloaded());
  v1::AttachResponse message;
  *message.mutable_share_query() = std::move(query);
  link->Send(std::move(message));
}

void ShareQueries::HandleAnswer(v1::AnswerShareQueryRequest answer) {
  Done done;
  {
    MutexLock lock(mutex_);
    const auto it = waiting_.find(answer.id());
    if (it == waiting_.end() || it->second.relay != answer.relay()) return;
    done = std::move(it->second.done);
    waiting_.erase(it);
    due_.Remove(answer.id());
  }
  done(std::move(answer));
}

void ShareQueries::ScheduleExpiry() {
  if (const auto due = due_.NextDue()) expire_.RunAfter(*due - parts_.clock.MonotonicNow());
}

void ShareQueries::ExpireDue() {
  std::vector<Waiting> late;
  {
    MutexLock lock(mutex_);
    const absl::Duration now = parts_.clock.MonotonicNow();
    while (const auto id = due_.PopDue(now)) {
      const auto it = waiting_.find(*id);
      late.push_back(std::move(it->second));
      waiting_.erase(it);
    }
    ScheduleExpiry();
  }
  for (const Waiting& one : late) {
    one.done(errors::RelayNotReached(one.relay, "it does not answer"));
  }
}

void ShareQueries::Stop() {
  expire_.Stop();
  stopper_.Stop();
  executor_.Drain(kAnswerWithin).IgnoreError();
  std::map<std::string, Waiting> left;
  {
    MutexLock lock(mutex_);
    left.swap(waiting_);
    due_ = {};
  }
  for (const auto& [id, one] : left) {
    one.done(errors::RelayNotReached(one.relay, "this relay stops"));
  }
}

// A query that cannot be answered or forwarded is dropped: it times out at the root relay.
void ShareQueries::HandleQuery(v1::ShareQuery query) {
  if (query.relay() != parts_.tree.name()) {
    const auto link = parts_.tree.Route(query.relay());
    if (link == nullptr) return;
    v1::AttachResponse message;
    *message.mutable_share_query() = std::move(query);
    return link->Send(std::move(message));
  }
  const bool queued = executor_.Post([this, query = std::move(query)] {
    const auto parent = parts_.peers.Parent();
    if (parent == nullptr) return;
    const absl::Status sent = ShareTransfer(parent, stopper_).Answer(Answer(query));
    if (sent.ok()) return;
    LogLimited(LogLevel::kWarning, "a query about shared files cannot be answered", "",
               {{"error", sent}});
  });
  if (!queued) LogLimited(LogLevel::kWarning, "too many queries about shared files", "");
}

v1::AnswerShareQueryRequest ShareQueries::Answer(const v1::ShareQuery& query) const {
  v1::AnswerShareQueryRequest answer;
  answer.set_id(query.id());
  answer.set_relay(parts_.tree.name());
  const auto fault = [&](const absl::Status& status) {
    answer.set_fault(std::string(status.message()));
    return answer;
  };
  if (query.has_list()) {
    auto list = local_index_.List(query.list(), nullptr);
    if (!list.ok()) return fault(list.status());
    *answer.mutable_list() = *std::move(list);
    return answer;
  }
  const v1::ShareKey& key = query.has_get() ? query.get() : query.remove();
  auto known = local_index_.Get(key);
  if (!known) return answer;
  if (query.has_remove()) {
    bool at_parent = false;
    const absl::Status removed = local_index_.Remove(key, &at_parent);
    if (absl::IsNotFound(removed) || at_parent) return answer;
    if (!removed.ok()) return fault(removed);
    known->share.set_state(v1::SHARE_STATE_REMOVED);
  }
  *answer.mutable_share() = std::move(known->share);
  return answer;
}

}  // namespace muster
