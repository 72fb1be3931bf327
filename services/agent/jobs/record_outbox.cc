#include "services/agent/jobs/record_outbox.h"

#include <string_view>

#include "absl/time/clock.h"
#include "services/common/base/clock.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/jobs.h"
#include "services/common/jobs/job_record.h"
#include "services/common/rpc/message_text.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// Twice the 1 GiB that a rule may permit (node_policy.h): the overhead of a small record may be as
// large as its output. A command waits while its output is synced: one that prints fast would wait
// for the disk most of the time if that happened after every 256 KiB.
constexpr JournalOptions kOptions = {.max_record = kMaxJobRecord,
                                     .max_unsynced = uint32_t{2} << 20,
                                     .max_size = (int64_t{2} << 30) + (int64_t{64} << 20)};

int64_t OutputOf(const v1::JobRecord& record) {
  return static_cast<int64_t>(record.output().data().size());
}

absl::Status Parse(std::string_view bytes, const std::string& job, v1::JobRecord* record) {
  if (ParseCleaned(bytes, record)) {
    return absl::OkStatus();
  }
  return errors::JobRecordsDamaged(job);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordOutbox>> RecordOutbox::Create(FileOps& ops,
                                                                   const std::string& path,
                                                                   std::string job,
                                                                   std::string node) {
  ASSIGN_OR_RETURN(auto journal, Journal::Create(ops, path, kOptions));
  std::unique_ptr<RecordOutbox> outbox(new RecordOutbox(std::move(job), std::move(node)));
  {
    MutexLock lock(outbox->mutex_);
    outbox->journal_ = std::move(journal);
  }
  return outbox;
}

absl::StatusOr<std::unique_ptr<RecordOutbox>> RecordOutbox::Open(FileOps& ops,
                                                                 const std::string& path,
                                                                 std::string job,
                                                                 std::string node) {
  std::unique_ptr<RecordOutbox> outbox(new RecordOutbox(std::move(job), std::move(node)));
  {
    MutexLock lock(outbox->mutex_);
    v1::JobRecord record;
    ASSIGN_OR_RETURN(outbox->journal_,
                     Journal::Open(ops, path,
                                   [&](std::string_view bytes, int64_t)
                                       ABSL_EXCLUSIVE_LOCKS_REQUIRED(outbox->mutex_) {
                                         absl::Status status = Parse(bytes, outbox->job_, &record);
                                         if (status.ok()) outbox->Count(&record);
                                         return status;
                                       }));
  }
  return outbox;
}

absl::StatusOr<std::unique_ptr<RecordOutbox>> RecordOutbox::Salvage(FileOps& ops,
                                                                    const std::string& path,
                                                                    std::string job,
                                                                    std::string node) {
  const std::string damaged = DamagedRecords(path);
  const absl::Status moved = ops.Rename(path, damaged);
  if (!moved.ok() && !absl::IsNotFound(moved)) return moved;
  RETURN_IF_ERROR(ops.SyncFolder(ParentFolder(path)));  // `path` tells that it is done
  // The new journal gets its name when it has all records: a crash before that repeats this.
  const std::string partial = path + ".salvaged";
  const absl::Status removed = ops.Remove(partial);
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  {
    ASSIGN_OR_RETURN(const auto salvaged, Create(ops, partial, job, node));
    RETURN_IF_ERROR(CopyRecords(ops, damaged, *salvaged));
    RETURN_IF_ERROR(salvaged->Sync());
  }
  RETURN_IF_ERROR(ops.Rename(partial, path));
  RETURN_IF_ERROR(ops.SyncFolder(ParentFolder(path)));
  return Open(ops, path, std::move(job), std::move(node));
}

absl::Status RecordOutbox::CopyRecords(FileOps& ops, const std::string& damaged,
                                       RecordOutbox& salvaged) {
  // Only damage ends the records: after another failure the caller tries again.
  const auto is_end = [](const absl::Status& status) {
    return absl::IsDataLoss(status) || absl::IsNotFound(status);
  };
  const auto info = ops.Stat(damaged);
  if (!info.ok()) return is_end(info.status()) ? absl::OkStatus() : info.status();
  auto reader = JournalReader::Open(ops, damaged);
  if (!reader.ok()) return is_end(reader.status()) ? absl::OkStatus() : reader.status();
  for (;;) {
    std::string_view bytes;
    v1::JobRecord record;
    const auto found = (*reader)->Next(info->size, &bytes);
    if (!found.ok()) return is_end(found.status()) ? absl::OkStatus() : found.status();
    if (!*found || !Parse(bytes, damaged, &record).ok()) return absl::OkStatus();
    RETURN_IF_ERROR(salvaged.Append(std::move(record)));
  }
}

// Counts a record that is in the journal, and sets its sequence.
void RecordOutbox::Count(v1::JobRecord* record) {
  record->set_sequence(++sequence_);
  digest_.Add(*record);
  if (record->has_final()) final_sequence_ = sequence_;
  if (record->has_started()) content_.started = true;
  if (record->has_outputs()) content_.outputs = true;
  if (record->has_workspace()) content_.workspace = true;
  if (record->has_output()) {
    Stream& stream =
        record->output().stream() == v1::JOB_STREAM_STDERR ? content_.err : content_.out;
    stream.bytes += static_cast<int64_t>(record->output().data().size());
    stream.in_log.Add(record->output().data());
  }
  if (record->has_cut()) {
    content_.cut = true;
    content_.cut_bytes += record->cut().bytes();
  }
}

RecordOutbox::Content RecordOutbox::content() const {
  MutexLock lock(mutex_);
  return content_;
}

absl::Status RecordOutbox::Append(v1::JobRecord record) {
  if (!record.has_time()) ToProto(absl::Now(), record.mutable_time());
  MutexLock lock(mutex_);
  record.set_job(job_);
  record.set_node(node_);
  record.set_sequence(sequence_ + 1);
  RETURN_IF_ERROR(ValidateJobRecord(record));
  record.clear_job();
  record.clear_node();
  record.clear_sequence();
  RETURN_IF_ERROR(journal_->Append(record.SerializeAsString()));
  Count(&record);
  return absl::OkStatus();
}

absl::Status RecordOutbox::Sync() {
  MutexLock lock(mutex_);
  return journal_->Sync();
}

absl::Status RecordOutbox::NextRecords(size_t max_bytes, const FinalSigner& sign,
                                       v1::JobRecords* out) {
  MutexLock lock(mutex_);
  JournalReader reader = journal_->ReadFrom(send_position_);
  while (sent_.size() < kMaxUnackedRecords) {
    std::string_view stored;
    ASSIGN_OR_RETURN(const auto found, reader.Next(journal_->end(), &stored));
    if (!found) break;
    v1::JobRecord record;
    RETURN_IF_ERROR(Parse(stored, job_, &record));
    record.set_job(job_);
    record.set_node(node_);
    record.set_sequence(send_sequence_);
    if (record.has_final() && sign != nullptr) {
      auto signature = sign(record, digest_);
      if (!signature.ok()) break;
      *record.mutable_final()->mutable_signature() = *std::move(signature);
    }
    const int64_t output = OutputOf(record);
    if (unacked_output_ + output > window_.size()) {
      window_.NoteFull();
      break;
    }
    if (out->ByteSizeLong() + record.ByteSizeLong() + 8 > max_bytes) break;
    // A record that the root relay has must not be lost here: a later one would get its sequence.
    if (reader.position() > journal_->durable_end()) {
      RETURN_IF_ERROR(journal_->Sync());
    }
    *out->add_records() = std::move(record);
    sent_.push_back({send_sequence_++, output, reader.position(), SystemClock().MonotonicNow()});
    unacked_output_ += output;
    send_position_ = reader.position();
  }
  return absl::OkStatus();
}

void RecordOutbox::Ack(int64_t sequence) {
  MutexLock lock(mutex_);
  int64_t output = 0;
  absl::Duration sent_at;
  while (!sent_.empty() && sent_.front().sequence <= sequence) {
    acked_ = sent_.front().sequence;
    acked_end_ = sent_.front().end;
    output += sent_.front().output;
    sent_at = sent_.front().at;
    sent_.pop_front();
  }
  unacked_output_ -= output;
  if (output > 0) window_.HandleAck(output, SystemClock().MonotonicNow() - sent_at);
}

void RecordOutbox::Rewind() {
  MutexLock lock(mutex_);
  RewindLocked();
}

bool RecordOutbox::RewindIfStalled() {
  MutexLock lock(mutex_);
  const int64_t first = sent_.empty() ? 0 : sent_.front().sequence;
  const bool stalled = first != 0 && first == checked_sequence_;
  checked_sequence_ = first;
  if (stalled) RewindLocked();
  return first != 0;
}

void RecordOutbox::RewindLocked() {
  sent_.clear();
  unacked_output_ = 0;
  window_ = SendWindow();  // the path may be another one
  send_position_ = acked_end_;
  send_sequence_ = acked_ + 1;
}

bool RecordOutbox::has_final() const {
  MutexLock lock(mutex_);
  return final_sequence_ != 0;
}

bool RecordOutbox::final_acked() const {
  MutexLock lock(mutex_);
  return final_sequence_ != 0 && acked_ >= final_sequence_;
}

int64_t RecordOutbox::size() const {
  MutexLock lock(mutex_);
  return journal_->end();
}

}  // namespace muster
