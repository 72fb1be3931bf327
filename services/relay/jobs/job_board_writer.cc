// The thread that stores what comes of jobs.
#include <algorithm>
#include <chrono>
#include <utility>

#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/jobs/job_board.h"

namespace muster {
namespace {

// How often time is looked at.
constexpr std::chrono::milliseconds kTick(500);

// A disk that is full is tried again after so long; nothing is read from nodes meanwhile.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

// Answers to records that nobody waits for go out after so long, each node's in one: a node goes on
// sending until 64 KiB or 256 records are not acknowledged. Longer than most commands take, so that
// the answers do not stand in the way of what others have to say.
constexpr absl::Duration kAckWithin = absl::Seconds(2);
constexpr int64_t kAckBytes = 16 * 1024;
constexpr int64_t kAckRecords = 64;
constexpr size_t kMaxOwed = 100'000;

void AddReached(const std::pair<std::string, std::string>& of, int64_t sequence,
                v1::RecordsAck* ack) {
  v1::RecordsAck::Reached& one = *ack->add_reached();
  one.set_job(of.first);
  one.set_node(of.second);
  one.set_sequence(sequence);
}

// Another try would not help, and hold up every other job.
bool IsRefused(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "JOURNAL_FULL" || reason == "JOURNAL_RECORD_SIZE";
}

}  // namespace

void JobBoard::AddMade(const std::string& job, std::vector<v1::JobRecord> records) {
  auto& all = made_[job];
  std::move(records.begin(), records.end(), std::back_inserter(all));
}

void JobBoard::Write(const std::stop_token& stop) {
  auto next_tick = std::chrono::steady_clock::now();
  while (!stop.stop_requested()) {
    std::deque<Batch> batches;
    ToStore to_store;
    {
      MutexLock lock(mutex_);
      work_.WaitUntil(mutex_, next_tick, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stop.stop_requested() || !batches_.empty() || !made_.empty() || reachable_ ||
               !relays_.empty();
      });
      if (std::chrono::steady_clock::now() >= next_tick) {
        TickAll();
        next_tick = std::chrono::steady_clock::now() + kTick;
      }
      TellRelays();
      if (std::exchange(reachable_, false)) {
        for (auto& [id, entry] : jobs_) {
          if (entry->state != nullptr) Release(*entry);
        }
      }
      batches.swap(batches_);
      to_store = TakeBatches(batches);
    }
    if (!Store(to_store, stop)) return;
    std::vector<std::string> ended;
    std::vector<std::string> old;
    {
      MutexLock lock(mutex_);
      Publish(to_store, &ended);
      old = TakeOld();
    }
    Acknowledge(batches);
    for (Batch& batch : batches) batch.done();
    for (const std::string& id : ended) Finish(id);
    for (const std::string& folder : old) {
      if (absl::Status s = RemoveTree(files_, folder); !s.ok()) {
        Log(LogLevel::kError, "an old job cannot be removed", {{"error", s}});
      }
    }
  }
}

void JobBoard::TickAll() {
  const absl::Time now = clock_.Now();
  for (auto& [id, entry] : jobs_) {
    if (entry->state == nullptr) continue;
    JobRoutes routes = RoutesOf(id, *entry->state);
    if (auto records = entry->state->Tick(now, routes); !records.empty()) {
      AddMade(id, std::move(records));
    } else if (entry->state->ended()) {
      made_[id];  // it may have ended before a restart, just not been told
    }
  }
}

void JobBoard::TellRelays() {
  for (const auto& [relay, attached] : std::exchange(relays_, {})) {
    const auto below = [&](std::string_view node) {
      const auto entry = tree_.Find(node);
      return entry.has_value() && entry->relay == relay;
    };
    for (auto& [id, entry] : jobs_) {
      if (entry->state == nullptr) continue;
      auto records = entry->state->Branch(relay, !attached, clock_.Now(), below);
      if (!records.empty()) AddMade(id, std::move(records));
    }
  }
}

JobBoard::ToStore JobBoard::TakeBatches(std::deque<Batch>& batches) {
  ToStore to_store = std::exchange(made_, {});
  for (Batch& batch : batches) {
    for (v1::JobRecord& record : *batch.records.mutable_records()) {
      const auto it = jobs_.find(record.job());
      if (it == jobs_.end() || it->second->state == nullptr) {
        if (record.has_final()) dispatcher_.Finish(record.job(), record.node());
        continue;
      }
      auto accepted = it->second->state->Receive(record);
      const bool final = !accepted.empty() && accepted.back().has_final();
      if (final) dispatcher_.Finish(record.job(), record.node());
      auto& all = to_store[record.job()];
      std::move(accepted.begin(), accepted.end(), std::back_inserter(all));
      // It is the turn of the next node.
      if (final && it->second->state->plan().parallel > 0) Release(*it->second);
    }
  }
  return to_store;
}

// Appends and syncs; as long as the disk is full it tries again. False when it has to stop.
bool JobBoard::Store(const ToStore& records, const std::stop_token& stop) {
  for (const auto& [id, list] : records) {
    Entry* entry = nullptr;
    {
      MutexLock lock(mutex_);
      if (const auto found = Find(id); found.ok()) entry = *found;
    }
    if (entry == nullptr || entry->log == nullptr) continue;
    size_t stored = 0;
    while (true) {
      absl::Status status;
      while (status.ok() && stored < list.size()) {
        status = entry->log->Append(list[stored].SerializeAsString());
        if (IsRefused(status)) {
          Log(LogLevel::kError, "a record of a job does not fit into its log and is lost",
              {{"job", id}, {"node", list[stored].node()}, {"error", status}});
          status = absl::OkStatus();
        }
        if (status.ok()) ++stored;
      }
      if (status.ok()) status = entry->log->Sync();
      if (status.ok()) break;
      Log(LogLevel::kError, "records of a job cannot be stored; trying again",
          {{"job", id}, {"error", status}});
      MutexLock lock(mutex_);
      work_.WaitFor(mutex_, kRetryAfter,
                    [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop.stop_requested(); });
      if (stop.stop_requested()) return false;
    }
  }
  return true;
}

void JobBoard::Publish(const ToStore& stored, std::vector<std::string>* ended) {
  for (const auto& [id, records] : stored) {
    const auto found = Find(id);
    if (!found.ok() || (*found)->state == nullptr) continue;
    Entry& entry = **found;
    entry.end = entry.log->end();
    if (entry.state->ended()) {
      ended->push_back(id);  // those who watch hear of it when that is stored
    } else {
      for (const auto& [watch, wake] : entry.watches) wake();
    }
  }
}

// Every record that came is answered: with what is reached, or, of a job that is over or not known
// here, with its own number, so that the node lets go of it. A node with much output on its way
// gets its answer at once, the others when answers to many records fit into one message.
void JobBoard::Acknowledge(const std::deque<Batch>& batches) {
  v1::RecordsAck now;
  {
    MutexLock lock(mutex_);
    for (const Batch& batch : batches) {
      for (const v1::JobRecord& record : batch.records.records()) Owe(record, &now);
    }
  }
  const absl::Duration time = clock_.MonotonicNow();
  if (time - owed_since_ >= kAckWithin || owed_.size() > kMaxOwed) {
    for (const auto& [key, owed] : owed_) AddReached(key, owed.sequence, &now);
    owed_.clear();
  }
  if (owed_.empty()) owed_since_ = time;
  if (now.reached_size() > 0) dispatcher_.SendAcks(now);
}

void JobBoard::Owe(const v1::JobRecord& record, v1::RecordsAck* now) {
  const auto it = jobs_.find(record.job());
  const bool runs = it != jobs_.end() && it->second->state != nullptr;
  const auto owed = owed_.try_emplace({record.job(), record.node()}).first;
  owed->second.sequence = runs ? it->second->state->Reached(record.node())
                               : std::max(owed->second.sequence, record.sequence());
  owed->second.bytes += static_cast<int64_t>(record.output().data().size());
  if (++owed->second.records < kAckRecords && owed->second.bytes < kAckBytes) return;
  AddReached(owed->first, owed->second.sequence, now);
  owed_.erase(owed);
}

// Stores that a job has ended, and lets go of what it needed while it ran.
void JobBoard::Finish(const std::string& id) {
  v1::Job job;
  std::shared_ptr<JobFolder> files;
  int64_t end = 0;
  {
    MutexLock lock(mutex_);
    const auto found = Find(id);
    if (!found.ok() || (*found)->state == nullptr) return;
    (*found)->state->SetEnd(clock_.Now());
    job = (*found)->state->Describe();
    files = (*found)->files;
    end = (*found)->end;
  }
  if (absl::Status s = files->MarkEnded(job, end); !s.ok()) {
    // The next tick tries again.
    Log(LogLevel::kError, "the end of a job cannot be stored", {{"job", id}, {"error", s}});
    return;
  }
  MutexLock lock(mutex_);
  const auto found = Find(id);
  if (!found.ok()) return;
  Entry& entry = **found;
  entry.job = std::move(job);
  entry.state.reset();
  entry.log.reset();
  entry.files.reset();
  entry.request = {};
  --running_;
  for (const auto& [watch, wake] : entry.watches) wake();
}

// Jobs that ended long ago, or that are too many: their folders, to be removed.
std::vector<std::string> JobBoard::TakeOld() {
  std::vector<std::string> folders;
  const int64_t keep_from = absl::ToUnixMicros(clock_.Now() - options_.retention);
  for (auto it = by_time_.begin(); it != by_time_.end();) {
    const bool old =
        it->first < keep_from || static_cast<int64_t>(by_time_.size()) > options_.max_kept;
    if (!old) break;
    Entry& entry = *jobs_.at(it->second);
    if (entry.state != nullptr || !entry.watches.empty()) {
      ++it;
      continue;
    }
    folders.push_back(entry.folder);
    jobs_.erase(it->second);
    it = by_time_.erase(it);
  }
  return folders;
}

}  // namespace muster
