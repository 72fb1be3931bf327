#include "services/relay/jobs/job_table.h"

#include <algorithm>

#include "services/common/errors/jobs.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

int64_t SubmitTime(const v1::Job& job) { return absl::ToUnixMicros(FromProto(job.submit_time())); }

}  // namespace

void JobTable::CountOf(const std::string& submitter, int64_t by) {
  if ((of_submitter_[submitter] += by) == 0) of_submitter_.erase(submitter);
}

void JobTable::DropReserved(const std::string& id) {
  const auto reserved = reserved_.find(id);
  if (reserved == reserved_.end()) return;
  CountOf(reserved->second, -1);
  reserved_.erase(reserved);
}

absl::Status JobTable::Reserve(const std::string& id, const std::string& submitter) {
  MutexLock lock(mutex_);
  if (jobs_.contains(id)) return errors::JobExists(id);
  if (reserved_.contains(id) || unread_.contains(id)) return errors::JobInCreation(id);
  if (running_ + static_cast<int64_t>(reserved_.size()) >= limits_.max_running) {
    return errors::TooManyJobs(limits_.max_running);
  }
  const int64_t most = std::max<int64_t>(1, limits_.max_running / 2);
  const auto own = of_submitter_.find(submitter);
  if (own != of_submitter_.end() && own->second >= most) {
    return errors::TooManyJobsOfSubmitter(submitter, most);
  }
  reserved_[id] = submitter;
  CountOf(submitter, 1);
  return absl::OkStatus();
}

void JobTable::Abandon(const std::string& id) {
  MutexLock lock(mutex_);
  DropReserved(id);
}

void JobTable::Insert(const std::string& id, Entry entry) {
  MutexLock lock(mutex_);
  DropReserved(id);
  (entry.has_output ? by_time_ : without_output_).emplace(SubmitTime(entry.job), id);
  if (entry.running != nullptr) {
    ++running_;
    CountOf(entry.job.submitted_by(), 1);
  }
  jobs_[id] = std::move(entry);
}

void JobTable::AddUnread(const std::string& id) {
  MutexLock lock(mutex_);
  unread_.insert(id);
}

bool JobTable::IsUnread(const std::string& id) const {
  MutexLock lock(mutex_);
  return unread_.contains(id);
}

absl::StatusOr<JobTable::Entry> JobTable::Find(const std::string& id) const {
  auto found = FindStored(id);
  if (found.ok() && !found->has_output) return errors::JobNotFound(id);
  return found;
}

absl::StatusOr<JobTable::Entry> JobTable::FindStored(const std::string& id) const {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return errors::JobNotFound(id);
  return found->second;
}

std::shared_ptr<RunningJob> JobTable::FindRunning(const std::string& id) const {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second.running;
}

std::vector<std::pair<std::string, std::shared_ptr<RunningJob>>> JobTable::Running() const {
  std::vector<std::pair<std::string, std::shared_ptr<RunningJob>>> running;
  MutexLock lock(mutex_);
  if (running_ + late_ == 0) return running;
  for (const auto& [id, entry] : jobs_) {
    if (entry.running != nullptr) running.emplace_back(id, entry.running);
  }
  return running;
}

std::vector<JobTable::Entry> JobTable::List(const std::string& before, size_t limit) const {
  std::vector<Entry> entries;
  MutexLock lock(mutex_);
  auto it = by_time_.end();
  if (const auto from = jobs_.find(before); from != jobs_.end()) {
    it = by_time_.lower_bound({SubmitTime(from->second.job), before});
  }
  while (it != by_time_.begin() && entries.size() < limit) {
    --it;
    entries.push_back(jobs_.at(it->second));
  }
  return entries;
}

void JobTable::Finish(const std::string& id, v1::Job job, int64_t end,
                      const std::vector<std::string>& abandoned) {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.running == nullptr) return;
  // Reopen did not count it.
  if (found->second.running->is_late()) {
    --late_;
  } else {
    CountOf(found->second.job.submitted_by(), -1);
    --running_;
  }
  found->second.job = std::move(job);
  found->second.end = end;
  found->second.abandoned = SetOf(abandoned);
  found->second.running.reset();
}

std::optional<std::string> JobTable::FindAbandoned(const std::string& id,
                                                   const std::string& node) const {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return std::nullopt;
  const Entry& entry = found->second;
  const bool waits = entry.running == nullptr && entry.has_output && entry.abandoned != nullptr &&
                     entry.abandoned->MayContain(node);
  return waits ? std::optional(entry.folder) : std::nullopt;
}

void JobTable::Reopen(const std::string& id, std::shared_ptr<RunningJob> running) {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.running != nullptr) return;
  found->second.running = std::move(running);
  ++late_;
}

void JobTable::ForgetAbandoned(const std::string& id) {
  MutexLock lock(mutex_);
  if (const auto found = jobs_.find(id); found != jobs_.end()) found->second.abandoned.reset();
}

void JobTable::SetCancelled(const std::string& id, const std::string& by, absl::Time at) {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  found->second.audit.cancelled_by = by;
  found->second.audit.cancelled_at = at;
}

std::optional<JobTable::Entry> JobTable::MarkAudited(const std::string& id, bool cancellation) {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return std::nullopt;
  AuditState& audit = found->second.audit;
  (cancellation ? audit.has_cancellation : audit.has_submission) = true;
  return found->second;
}

std::vector<JobTable::Entry> JobTable::Unaudited(size_t limit) const {
  std::vector<Entry> entries;
  MutexLock lock(mutex_);
  for (const auto* jobs : {&without_output_, &by_time_}) {
    for (const auto& [time, id] : *jobs) {
      if (entries.size() == limit) return entries;
      const Entry& entry = jobs_.at(id);
      if (!entry.audit.complete()) entries.push_back(entry);
    }
  }
  return entries;
}

void JobTable::RemoveOutputs(absl::Time now, const std::function<bool(const std::string&)>& is_kept,
                             Old* old) {
  const int64_t keep_from = absl::ToUnixMicros(now - limits_.retention);
  for (auto it = by_time_.begin(); it != by_time_.end();) {
    const auto count = static_cast<int64_t>(by_time_.size());
    if (it->first >= keep_from && count <= limits_.max_kept) break;
    const auto found = jobs_.find(it->second);
    Entry& entry = found->second;
    if (entry.running != nullptr || is_kept(it->second)) {
      ++it;
      continue;
    }
    if (entry.audit.complete()) {
      old->removed.push_back(std::move(entry));
      jobs_.erase(found);
    } else {
      entry.has_output = false;
      without_output_.insert(*it);
      old->without_output.push_back(entry);
    }
    it = by_time_.erase(it);
  }
}

JobTable::Old JobTable::RemoveOld(absl::Time now,
                                  const std::function<bool(const std::string&)>& is_kept) {
  Old old;
  MutexLock lock(mutex_);
  RemoveOutputs(now, is_kept, &old);
  for (auto it = without_output_.begin(); it != without_output_.end();) {
    const auto found = jobs_.find(it->second);
    const bool waits = static_cast<int64_t>(jobs_.size()) <= limits_.max_unaudited;
    if (waits && !found->second.audit.complete()) {
      ++it;
      continue;
    }
    old.removed.push_back(std::move(found->second));
    jobs_.erase(found);
    it = without_output_.erase(it);
  }
  return old;
}

int64_t JobTable::running() const {
  MutexLock lock(mutex_);
  return running_;
}

}  // namespace muster
