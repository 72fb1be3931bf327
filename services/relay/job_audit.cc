#include "services/relay/job_audit.h"

#include <chrono>
#include <utility>

#include "muster/v1/audit.grpc.pb.h"
#include "services/common/base/log.h"
#include "services/relay/call_later.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(30);

void LogLost(const v1::RecordJobRequest& record, const absl::Status& why) {
  Log(LogLevel::kWarning, "the audit log lacks a record of a job",
      {{"job", record.job()},
       {"by", record.actor()},
       {"event", record.cancelled() ? "cancelled" : "submitted"},
       {"error", why.ToString()}});
}

}  // namespace

void RecordJob(const std::shared_ptr<grpc::Channel>& aggregator, v1::RecordJobRequest record) {
  if (aggregator == nullptr) {
    return LogLost(record,
                   absl::UnavailableError("this relay has no connection to the aggregator"));
  }
  CallLater<v1::AuditService, v1::RecordJobRequest, v1::RecordJobResponse>(
      aggregator, &v1::AuditService::Stub::async::RecordJob, record, kAnswerWithin,
      [record](const absl::Status& status, const v1::RecordJobResponse&) {
        if (!status.ok()) LogLost(record, status);
      });
}

}  // namespace muster
