#include "services/relay/jobs/pending_acks.h"

#include <algorithm>

namespace muster {
namespace {

// Longer than most commands take, so that acks do not delay other messages.
constexpr absl::Duration kMaxDelay = absl::Seconds(2);
constexpr int64_t kMaxBytes = 16 * 1024;
constexpr int64_t kMaxRecords = 64;
constexpr size_t kMaxPending = 10'000;

void AddReached(const std::pair<std::string, std::string>& job_and_node, int64_t sequence,
                v1::RecordsAck* acks) {
  v1::RecordsAck::Reached& reached = *acks->add_reached();
  reached.set_job(job_and_node.first);
  reached.set_node(job_and_node.second);
  reached.set_sequence(sequence);
}

}  // namespace

void PendingAcks::Add(const v1::JobRecord& record, int64_t reached) {
  const auto found = pending_.try_emplace({record.job(), record.node()}).first;
  Pending& pending = found->second;
  pending.sequence = std::max(pending.sequence, reached);
  pending.bytes += static_cast<int64_t>(record.output().data().size());
  if (++pending.records < kMaxRecords && pending.bytes < kMaxBytes) return;
  AddReached(found->first, pending.sequence, &due_);
  pending_.erase(found);
}

v1::RecordsAck PendingAcks::DequeueDue(absl::Duration now) {
  if (!pending_.empty()) since_ = std::min(since_, now);
  if (now - since_ >= kMaxDelay || pending_.size() > kMaxPending) {
    for (const auto& [key, pending] : pending_) AddReached(key, pending.sequence, &due_);
    pending_.clear();
  }
  if (pending_.empty()) since_ = absl::InfiniteDuration();
  v1::RecordsAck due;
  due.Swap(&due_);
  return due;
}

}  // namespace muster
