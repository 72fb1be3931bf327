// Sends audit records of a service to the aggregator.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_AUDIT_SENDER_H_
#define MUSTER_SERVICES_COMMON_SERVICE_AUDIT_SENDER_H_

#include <grpcpp/channel.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/audit.grpc.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/log.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/call_later.h"
#include "services/common/rpc/task_answer.h"

namespace muster {

// Returns whether the aggregator would answer the same again, because it rejects the record itself.
// An error that concerns the sending service is temporary.
bool IsFinalAuditAnswer(const absl::Status& answer);

// Sends the records that the audit log lacks to the aggregator, those of one subject one after the
// other. The recorded changes do not wait for that. The disk contains which records were not stored
// yet (Parts::unaudited), so none is lost with this process. After a restart a record may be sent
// again; the aggregator stores it once.
//
// Has no thread: a task on the executor sends records, and waits for the disk to note the answers.
// Thread-safe. `Record`: a message, or another type with ByteSizeLong.
template <typename Record>
class AuditSender {
 public:
  // The bytes of the records that wait for an answer, unless a single one is larger.
  static constexpr size_t kMaxInFlight = size_t{4} << 20;
  // Subjects with a record that waits for an answer.
  static constexpr size_t kSubjectsAtOnce = 100;
  // Until the next attempt after a failure.
  static constexpr absl::Duration kRetryAfter = absl::Seconds(10);

  using Done = std::function<void(const absl::Status&)>;
  // Sends one record, and calls `done` once, from any thread.
  using Send = std::function<void(const Record& record, Done done)>;

  struct Parts {
    // Returns the records of at most `limit` subjects, those of one subject in their order.
    std::function<std::vector<Record>(size_t limit)> unaudited;
    // Stores that the audit log has the record: `unaudited` does not return it again. After a
    // failure the record may be sent again. Both are called on the executor.
    std::function<absl::Status(const Record& record)> mark_audited;
    Send send;
    std::function<std::string(const Record& record)> subject_of;
    // Logs the content of a record that the audit log will never have.
    std::function<void(const Record& record, const std::string& why)> log_lost;
    // Until `unaudited` is called again when it has returned nothing; infinite: at the next Wake.
    absl::Duration poll_after = absl::InfiniteDuration();
  };

  // `timers` and `executor` outlive it.
  AuditSender(Parts parts, TimerService& timers, Executor& executor)
      : parts_(std::move(parts)), task_(timers, executor, [this] { Step(); }) {
    answer_->SetTask(&task_);
    task_.RunNow();  // for the records of an earlier process
  }

  // Calls no part afterwards. An answer that arrives later is dropped.
  ~AuditSender() {
    answer_->SetTask(nullptr);
    task_.Stop();
  }

  // There are more records.
  void Wake() { task_.RunNow(); }

 private:
  using Batch = AnswerBatch<std::pair<Record, absl::Status>>;

  void Step() {
    if (waits_) {
      const auto answers = answer_->Take();
      if (!answers) return;  // the last answer runs the task
      waits_ = false;
      bool failed = false;
      for (const auto& [record, answer] : *answers) failed |= !Handle(record, answer);
      if (failed) return task_.RunAfter(kRetryAfter);
    }
    SendNext();
  }

  // Returns false if a record has to be sent again.
  bool Handle(const Record& record, const absl::Status& answer) {
    const std::string subject = parts_.subject_of(record);
    if (!answer.ok() && !IsFinalAuditAnswer(answer)) {
      LogLimited(LogLevel::kWarning, "cannot add a record to the audit log; trying again", "",
                 {{"subject", subject}, {"error", answer}});
      return false;
    }
    if (!answer.ok()) parts_.log_lost(record, answer.ToString());
    const absl::Status marked = parts_.mark_audited(record);
    if (!marked.ok()) {
      LogLimited(LogLevel::kError,
                 "cannot note on disk that the audit log has a record; it is sent again later", "",
                 {{"subject", subject}, {"error", marked}});
    }
    return marked.ok();
  }

  // Sends the first record of each subject, as far as they fit into the limit. Their answers send
  // the rest.
  void SendNext() {
    std::vector<Record> records = parts_.unaudited(kSubjectsAtOnce);
    if (records.empty()) {
      if (parts_.poll_after < absl::InfiniteDuration()) {
        task_.RunAfter(parts_.poll_after);
      }
      return;
    }
    std::set<std::string> subjects;
    std::erase_if(records, [&](const Record& record) {
      return !subjects.insert(parts_.subject_of(record)).second;
    });
    size_t bytes = 0;
    size_t count = 0;
    while (count < records.size()) {
      bytes += records[count].ByteSizeLong();
      if (count > 0 && bytes > kMaxInFlight) break;
      ++count;
    }
    records.resize(count);
    waits_ = true;
    const auto batch = std::make_shared<Batch>(count, answer_);
    for (const Record& record : records) {
      parts_.send(record,
                  [record, batch](const absl::Status& answer) { batch->Add({record, answer}); });
    }
  }

  const Parts parts_;
  const std::shared_ptr<typename Batch::Answer> answer_ =
      std::make_shared<typename Batch::Answer>();
  bool waits_ = false;  // for answers; used by the task
  ScheduledTask task_;  // last: it uses the members above
};

// Sends a request to the current aggregator, which may be null, and calls `done` once.
template <typename Request, typename Response>
void SendAuditRequest(const std::shared_ptr<grpc::Channel>& aggregator,
                      LaterMethod<v1::AuditService, Request, Response> method,
                      const Request& request, std::function<void(const absl::Status&)> done) {
  constexpr std::chrono::seconds kAnswerWithin(30);
  if (aggregator == nullptr) {
    return done(absl::UnavailableError("this service has no connection to the aggregator"));
  }
  CallLater<v1::AuditService, Request, Response>(
      aggregator, method, request, kAnswerWithin,
      [done = std::move(done)](const absl::Status& status, const Response&) { done(status); });
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_AUDIT_SENDER_H_
