#include "services/relay/job_audit.h"

#include <chrono>
#include <set>
#include <string>
#include <utility>

#include "muster/v1/audit.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/rpc/call_later.h"
#include "services/relay/jobs/audit_records.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(30);
constexpr size_t kJobsAtOnce = 100;

// Returns whether the aggregator would answer the same again, because it rejects the record itself.
// An error that concerns this relay is temporary. An error before the handler of the call has no
// reason: the certificate of this relay was revoked, for example.
bool IsFinal(const absl::Status& answer) {
  if (absl::IsInvalidArgument(answer)) return true;
  const std::string reason = ReasonOf(answer);
  return absl::IsPermissionDenied(answer) && !reason.empty() && reason != "NOT_YOURS";
}

}  // namespace

JobAudit::JobAudit(Parts parts, TimerService& timers, Executor& executor)
    : parts_(std::move(parts)), task_(timers, executor, [this] { Step(); }) {
  {
    MutexLock lock(answers_->mutex);
    answers_->task = &task_;
  }
  task_.RunNow();  // for the records of an earlier process
}

JobAudit::~JobAudit() {
  {
    MutexLock lock(answers_->mutex);
    answers_->task = nullptr;
  }
  task_.Stop();
}

void JobAudit::Step() {
  std::vector<std::pair<Record, absl::Status>> arrived;
  {
    MutexLock lock(answers_->mutex);
    if (answers_->waiting > 0) return;  // the last answer runs the task
    arrived = std::exchange(answers_->arrived, {});
  }
  bool failed = false;
  for (const auto& [record, answer] : arrived) failed |= !Handle(record, answer);
  if (failed) return task_.RunAfter(kRetryAfter);
  SendNext();
}

bool JobAudit::Handle(const Record& record, const absl::Status& answer) {
  if (!answer.ok() && !IsFinal(answer)) {
    LogLimited(LogLevel::kWarning, "cannot record a job in the audit log; trying again", "",
               {{"job", record.job()}, {"error", answer}});
    return false;
  }
  if (!answer.ok()) LogLostAuditRecord(record, answer.ToString());
  const absl::Status marked = parts_.mark_audited(record);
  if (!marked.ok()) {
    LogLimited(LogLevel::kError,
               "cannot note on disk that the audit log has a job; a restart sends it again", "",
               {{"job", record.job()}, {"error", marked}});
  }
  return true;
}

// Sends the first record of each job, as far as they fit into the limit. Their answers send the
// rest.
void JobAudit::SendNext() {
  std::vector<Record> records = parts_.unaudited(kJobsAtOnce);
  std::set<std::string> jobs;
  std::erase_if(records, [&](const Record& record) { return !jobs.insert(record.job()).second; });
  size_t bytes = 0;
  size_t count = 0;
  while (count < records.size()) {
    bytes += records[count].ByteSizeLong();
    if (count > 0 && bytes > kMaxInFlight) break;
    ++count;
  }
  records.resize(count);
  {
    MutexLock lock(answers_->mutex);
    answers_->waiting = count;
  }
  for (const Record& record : records) {
    parts_.send(record, [record, answers = answers_](const absl::Status& answer) {
      MutexLock lock(answers->mutex);
      answers->arrived.emplace_back(record, answer);
      if (--answers->waiting == 0 && answers->task != nullptr) answers->task->RunNow();
    });
  }
}

JobAudit::Send SendToAggregator(std::function<std::shared_ptr<grpc::Channel>()> aggregator) {
  return [aggregator = std::move(aggregator)](const JobAudit::Record& record, JobAudit::Done done) {
    const auto channel = aggregator();
    if (channel == nullptr) {
      return done(absl::UnavailableError("this relay has no connection to the aggregator"));
    }
    CallLater<v1::AuditService, v1::RecordJobRequest, v1::RecordJobResponse>(
        channel, &v1::AuditService::Stub::async::RecordJob, record, kAnswerWithin,
        [done = std::move(done)](const absl::Status& status, const v1::RecordJobResponse&) {
          done(status);
        });
  };
}

}  // namespace muster
