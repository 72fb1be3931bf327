#include "services/relay/job_audit.h"

#include <string>
#include <utility>

#include "muster/v1/audit.grpc.pb.h"
#include "services/relay/jobs/audit_records.h"

namespace muster {

JobAudit::JobAudit(Parts parts, TimerService& timers, Executor& executor)
    : sender_({.unaudited = std::move(parts.unaudited),
               .mark_audited = std::move(parts.mark_audited),
               .send = std::move(parts.send),
               .subject_of = [](const Record& record) { return record.job(); },
               .log_lost = [](const Record& record,
                              const std::string& why) { LogLostAuditRecord(record, why); }},
              timers, executor) {}

JobAudit::Send SendToAggregator(std::function<std::shared_ptr<grpc::Channel>()> aggregator) {
  return [aggregator = std::move(aggregator)](const JobAudit::Record& record, JobAudit::Done done) {
    SendAuditRequest<v1::RecordJobRequest, v1::RecordJobResponse>(
        aggregator(), &v1::AuditService::Stub::async::RecordJob, record, std::move(done));
  };
}

}  // namespace muster
