#include "services/relay/job_audit.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "muster/v1/audit.grpc.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/utf8.h"
#include "services/relay/call_later.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(30);
constexpr size_t kMaxLoggedArgv = 1'024;

// Returns the memory of a record in flight: the call needs more than the record.
int64_t SizeInFlight(const v1::RecordJobRequest& record) {
  constexpr int64_t kCall = 2'048;
  return static_cast<int64_t>(record.ByteSizeLong()) + kCall;
}

void LogLost(const v1::RecordJobRequest& record, const absl::Status& why) {
  constexpr std::string_view kMessage = "the audit log lacks a record of a job";
  if (record.cancelled()) {
    return Log(
        LogLevel::kWarning, kMessage,
        {{"job", record.job()}, {"by", record.actor()}, {"event", "cancelled"}, {"error", why}});
  }
  Log(LogLevel::kWarning, kMessage,
      {{"job", record.job()},
       {"by", record.actor()},
       {"event", "submitted"},
       {"action", record.action()},
       {"argv", CutUtf8(absl::StrJoin(record.argv(), " "), kMaxLoggedArgv)},
       {"targets", record.targets()},
       {"error", why}});
}

}  // namespace

void JobAudit::Record(const v1::RecordJobRequest& record) {
  const int64_t size = SizeInFlight(record);
  if (in_flight_->fetch_add(size) + size > kMaxInFlight) {
    in_flight_->fetch_sub(size);
    return LogLost(record, absl::ResourceExhaustedError("too many records wait for an answer"));
  }
  send_(record, [record, size, in_flight = in_flight_](const absl::Status& status) {
    in_flight->fetch_sub(size);
    if (!status.ok()) LogLost(record, status);
  });
}

JobAudit::Send SendToAggregator(std::function<std::shared_ptr<grpc::Channel>()> aggregator) {
  return [aggregator = std::move(aggregator)](const v1::RecordJobRequest& record,
                                              JobAudit::Done done) {
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
