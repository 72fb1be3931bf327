#include "services/agent/jobs/refusals.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/jobs/final_record.h"
#include "services/common/rpc/proto_time.h"

namespace muster {

void Refusals::Add(const std::string& job, v1::JobRecord record) {
  record.set_job(job);
  record.set_node(node_);
  record.set_sequence(1);
  ToProto(absl::Now(), record.mutable_time());
  if (const auto known = Find(job); known != records_.end()) record = *known;
  Drop(job);
  if (records_.size() >= max_records_) Drop(std::string(records_.front().job()));
  records_.push_back(std::move(record));
}

std::deque<v1::JobRecord>::iterator Refusals::Find(const std::string& job) {
  return std::ranges::find(records_, job, &v1::JobRecord::job);
}

void Refusals::Drop(const std::string& job) {
  const auto found = Find(job);
  if (found == records_.end()) return;
  if (static_cast<size_t>(found - records_.begin()) < sent_) --sent_;
  records_.erase(found);
}

void Refusals::NextRecords(size_t max_bytes, const FinalSigner& sign, v1::JobRecords* out) {
  for (; sent_ < records_.size(); ++sent_) {
    v1::JobRecord record = records_[sent_];
    if (sign != nullptr) {
      RecordsDigest digest;
      digest.Add(record);
      auto signature = sign(record, digest);
      if (!signature.ok()) return;
      *record.mutable_final()->mutable_signature() = *std::move(signature);
    }
    if (out->ByteSizeLong() + record.ByteSizeLong() + 8 > max_bytes) return;
    *out->add_records() = std::move(record);
  }
}

void Refusals::Ack(const std::string& job) {
  const auto found = Find(job);
  // If the record is unsent, the ack is for an earlier one.
  if (found != records_.end() && static_cast<size_t>(found - records_.begin()) < sent_) Drop(job);
}

bool Refusals::RewindIfStalled() {
  const std::string first = sent_ > 0 ? records_.front().job() : "";
  const bool stalled = !first.empty() && first == checked_;
  checked_ = first;
  if (stalled) Rewind();
  return !first.empty();
}

v1::JobRecord Refusal(const absl::Status& why) {
  const std::string reason = ReasonOf(why);
  return FinalRecord(
      reason == "COMMAND_EXPIRED" ? v1::JOB_OUTCOME_EXPIRED : v1::JOB_OUTCOME_REFUSED, reason,
      ToStd(why.message()));
}

v1::JobRecord TooManyJobs(size_t limit) {
  return FinalRecord(v1::JOB_OUTCOME_FAILED, "TOO_MANY_JOBS",
                     absl::StrCat("this node has ", limit, " jobs already"));
}

}  // namespace muster
