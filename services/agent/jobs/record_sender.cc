#include "services/agent/jobs/record_sender.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/jobs/job_record.h"

namespace muster {

RecordSender::RecordSender(Options options, std::function<void()> on_records)
    : options_(std::move(options)),
      on_records_(std::move(on_records)),
      refusals_(options_.node, options_.max_refusals),
      signing_(*options_.timers, *options_.executor, on_records_),
      reading_(*options_.timers, *options_.executor, on_records_),
      resend_(*options_.timers, *options_.executor, [this] { ResendStalled(); }) {}

RecordSender::~RecordSender() = default;

void RecordSender::Add(const std::string& job, RecordOutbox& outbox) {
  MutexLock lock(mutex_);
  sources_[job] = {&outbox, absl::OkStatus()};
}

void RecordSender::Remove(const std::string& job) {
  MutexLock lock(mutex_);
  sources_.erase(job);
  acked_.NotifyAll();
}

void RecordSender::AddRefusal(const std::string& job, v1::JobRecord record) {
  MutexLock lock(mutex_);
  refusals_.Add(job, std::move(record));
}

bool RecordSender::NextRecords(v1::JobRecords* records) {
  MutexLock lock(mutex_);
  FinalSigner sign;
  if (options_.sign != nullptr) {
    sign = [this](const v1::JobRecord& final, const RecordsDigest& digest)
               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Sign(final, digest); };
  }
  refusals_.NextRecords(kMaxJobRecords, sign, records);
  const bool may_retry = reading_.is_open();
  bool any = records->records_size() > 0;
  // From the job after the last one that was served, once around.
  auto next = sources_.upper_bound(last_served_);
  for (size_t i = 0; i < sources_.size(); ++i, ++next) {
    if (next == sources_.end()) next = sources_.begin();
    auto& [job, source] = *next;
    if (!source.failure.ok() && (!may_retry || absl::IsDataLoss(source.failure))) continue;
    if (!Read(job, source, sign, records)) continue;
    last_served_ = job;
    any = true;
  }
  if (any && !awaits_acks_) {
    awaits_acks_ = true;
    resend_.RunAfter(kResendAfter);
  }
  return any;
}

void RecordSender::ResendStalled() {
  {
    MutexLock lock(mutex_);
    awaits_acks_ = refusals_.RewindIfStalled();
    for (const auto& [job, source] : sources_) {
      if (source.outbox->RewindIfStalled()) awaits_acks_ = true;
    }
    if (!awaits_acks_) return;
    resend_.RunAfter(kResendAfter);
  }
  on_records_();
}

// Returns true if it added records.
bool RecordSender::Read(const std::string& job, Source& source, const FinalSigner& sign,
                        v1::JobRecords* records) {
  const int before = records->records_size();
  absl::Status status = source.outbox->NextRecords(kMaxJobRecords, sign, records);
  if (status.ok()) {
    if (!source.failure.ok()) reading_.Reset();
  } else {
    if (status != source.failure) {
      Log(LogLevel::kError, "the records of a job cannot be sent",
          {{"job", job}, {"error", status}});
    }
    if (!absl::IsDataLoss(status)) reading_.Close();
  }
  source.failure = std::move(status);
  return records->records_size() > before;
}

absl::StatusOr<v1::JobRecord::RecordsSignature> RecordSender::Sign(const v1::JobRecord& final,
                                                                   const RecordsDigest& digest) {
  if (!signing_.is_open()) return sign_failure_;
  auto signature = options_.sign(final, digest);
  if (!signature.ok()) {
    if (signature.status() != sign_failure_) {
      Log(LogLevel::kError, "final records of jobs cannot be signed; trying again",
          {{"job", final.job()}, {"error", signature.status()}});
    }
    sign_failure_ = signature.status();
    signing_.Close();
  } else if (!sign_failure_.ok()) {
    Log(LogLevel::kInfo, "final records of jobs are signed again");
    sign_failure_ = absl::OkStatus();
    signing_.Reset();
  }
  return signature;
}

void RecordSender::HandleAcks(const v1::RecordsAck& acks) {
  MutexLock lock(mutex_);
  for (const v1::RecordsAck::Reached& reached : acks.reached()) {
    if (reached.node() != options_.node) continue;
    const auto source = sources_.find(reached.job());
    if (source != sources_.end()) source->second.outbox->Ack(reached.sequence());
    refusals_.Ack(reached.job());
  }
  acked_.NotifyAll();
}

void RecordSender::Rewind() {
  MutexLock lock(mutex_);
  refusals_.Rewind();
  for (const auto& [job, source] : sources_) source.outbox->Rewind();
}

bool RecordSender::AwaitAcked(absl::Duration limit) {
  MutexLock lock(mutex_);
  return acked_.WaitFor(mutex_, limit,
                        [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return all_acked(); });
}

bool RecordSender::all_acked() const {
  return refusals_.empty() && std::ranges::none_of(sources_, [](const auto& entry) {
           const RecordOutbox& outbox = *entry.second.outbox;
           return outbox.has_final() && !outbox.final_acked();
         });
}

}  // namespace muster
