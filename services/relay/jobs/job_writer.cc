#include "services/relay/jobs/job_writer.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/relay/jobs/audit_records.h"
#include "services/relay/jobs/job_folder.h"

namespace muster {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(500);

// A failed write is repeated after this time.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

}  // namespace

JobWriter::JobWriter(Parts parts)
    : parts_(std::move(parts)), task_(parts_.timers, parts_.executor, [this] { Run(); }) {
  parts_.inbox.Listen([this] { task_.RunNow(); });
  task_.RunNow();
}

JobWriter::~JobWriter() {
  parts_.inbox.Listen(nullptr);
  task_.Stop();
}

void JobWriter::Run() {
  const absl::Duration now = parts_.clock.MonotonicNow();
  // More work arrived before the retry.
  if (now < retry_at_) return task_.RunAfter(retry_at_ - now);
  const bool retried = round_.has_value();
  if (!retried) {
    round_ = Round{parts_.inbox.Dequeue(), now >= tick_at_};
    if (round_->tick) tick_at_ = now + kTick;
    Begin(*round_);
  }
  if (!StoreAll()) {
    retry_at_ = now + kRetryAfter;
    return task_.RunAfter(kRetryAfter);
  }
  End(*std::exchange(round_, std::nullopt));
  if (retried) return task_.RunNow();  // for what arrived during the wait
  task_.RunAfter(tick_at_ - parts_.clock.MonotonicNow());
}

void JobWriter::Begin(Round& round) {
  // Before the ticks: a target whose record is here has not gone silent.
  for (RecordInbox::Batch& batch : round.work.batches) {
    DropUnsigned(&batch.records);
    for (const v1::JobRecord& record : batch.records.records()) Receive(record);
  }
  for (const auto& [id, job] : parts_.table.Running()) {
    if (round.tick) job->Tick();
    if (!round.work.relays.empty()) job->OnRelaysChanged(round.work.relays);
    if (round.work.reachable) job->OnReachable();
  }
}

void JobWriter::End(Round round) {
  Ack(round.work.batches);
  held_.clear();
  for (RecordInbox::Batch& batch : round.work.batches) batch.done();
  for (const auto& [id, job] : parts_.table.Running()) {
    const bool waits =
        job->is_late() && parts_.late != nullptr && job->has_abandoned() && parts_.late->Awaits(id);
    if (job->ended() && !waits) Finish(id, *job);
  }
  if (round.tick) RemoveOld();
}

// Drops final records that their nodes did not sign: a relay on the route made or changed them.
// They are not acked, so the node sends its own again when it is attached to another relay.
void JobWriter::DropUnsigned(v1::JobRecords* records) {
  if (parts_.verify == nullptr) return;
  const auto is_unsigned = [&](const v1::JobRecord& record) {
    if (!record.has_final()) return false;
    const absl::Status status = parts_.verify(record);
    if (status.ok()) return false;
    if (const auto job = parts_.table.FindRunning(record.job()); job != nullptr) {
      job->NoteDropped(record.node(), status);
    }
    LogLimited(LogLevel::kError, "a final record of a job is dropped", record.node(),
               {{"job", record.job()}, {"node", record.node()}, {"error", status}});
    return true;
  };
  auto& all = *records->mutable_records();
  all.erase(std::remove_if(all.begin(), all.end(), is_unsigned), all.end());
}

void JobWriter::Receive(const v1::JobRecord& record) {
  if (const auto job = parts_.table.FindRunning(record.job()); job != nullptr) {
    const bool is_new = job->Receive(record);
    if (is_new && job->is_late() && parts_.late != nullptr) parts_.late->NoteRecord(record.job());
    return;
  }
  if (parts_.late != nullptr && parts_.late->Hold(record)) {
    held_.insert(record.job());
  } else if (record.has_final()) {
    parts_.dispatcher.Finish(record.job(), record.node());
  }
}

// Returns false if some records are not stored, to be called again.
bool JobWriter::StoreAll() {
  for (const auto& [id, job] : parts_.table.Running()) {
    const auto stored = job->Store();
    if (!stored.ok()) {
      Log(LogLevel::kError, "records of a job cannot be stored; trying again",
          {{"job", id}, {"error", stored.status()}});
      return false;
    }
    // The watchers of a job that has ended are woken when its end is stored.
    if (*stored && (job->is_late() || !job->ended())) parts_.watchers.Wake(id);
  }
  return true;
}

// Acks every record: what is stored, or the record itself if its job is finished or unknown, so
// that the node deletes it. A node keeps the records of a job that the next start may read.
void JobWriter::Ack(const std::deque<RecordInbox::Batch>& batches) {
  for (const RecordInbox::Batch& batch : batches) {
    for (const v1::JobRecord& record : batch.records.records()) {
      if (parts_.table.IsUnread(record.job()) || held_.contains(record.job())) continue;
      const auto job = parts_.table.FindRunning(record.job());
      acks_.Add(record, job == nullptr ? record.sequence() : job->Reached(record.node()));
    }
  }
  const v1::RecordsAck due = acks_.DequeueDue(parts_.clock.MonotonicNow());
  if (due.reached_size() > 0) parts_.dispatcher.SendAcks(due);
}

void JobWriter::Finish(const std::string& id, RunningJob& job) {
  auto finished = job.Finish();
  if (!finished.ok()) {
    LogLimited(LogLevel::kError, "the end of a job cannot be stored; trying again", "",
               {{"job", id}, {"error", finished.status()}});
    if (!job.is_late()) return;
    finished = job.Describe();  // the next start ends it
  }
  parts_.table.Finish(id, *std::move(finished), job.end(), job.Abandoned());
  if (parts_.late != nullptr) parts_.late->Remove(id);
  parts_.watchers.Wake(id);
}

void JobWriter::RemoveOld() {
  const auto is_used = [this](const std::string& id) {
    return parts_.watchers.Any(id) || (parts_.late != nullptr && parts_.late->Awaits(id));
  };
  const JobTable::Old old = parts_.table.RemoveOld(parts_.clock.Now(), is_used);
  for (const JobTable::Entry& entry : old.without_output) {
    const absl::Status removed = parts_.files.Remove(RecordsPath(entry.folder));
    if (removed.ok() || absl::IsNotFound(removed)) continue;
    Log(LogLevel::kError, "the output of an old job cannot be removed", {{"error", removed}});
  }
  for (const JobTable::Entry& removed : old.removed) {
    for (const v1::RecordJobRequest& record : MissingAuditRecords(removed)) {
      LogLostAuditRecord(record, "too many jobs were waiting for the audit log");
    }
    if (absl::Status s = RemoveTree(parts_.files, removed.folder); !s.ok()) {
      Log(LogLevel::kError, "an old job cannot be removed", {{"error", s}});
    }
  }
}

}  // namespace muster
