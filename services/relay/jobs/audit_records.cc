#include "services/relay/jobs/audit_records.h"

#include <cstddef>

#include "absl/strings/str_join.h"
#include "services/common/base/log.h"
#include "services/common/base/utf8.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr size_t kMaxLoggedArgv = 1'024;

v1::RecordJobRequest SubmissionOf(const v1::Job& job) {
  v1::RecordJobRequest record;
  record.set_job(job.job());
  record.set_actor(job.submitted_by());
  record.set_action(job.action());
  *record.mutable_argv() = job.argv();
  if (job.argv().empty() && !job.classes().empty()) {
    record.add_argv("-D");
    record.add_argv(absl::StrJoin(job.classes(), ","));
  }
  record.set_image(job.image());
  record.set_targets(job.targets());
  *record.mutable_time() = job.submit_time();
  return record;
}

}  // namespace

std::vector<v1::RecordJobRequest> MissingAuditRecords(const JobTable::Entry& entry) {
  std::vector<v1::RecordJobRequest> records;
  const AuditState& audit = entry.audit;
  if (!audit.has_submission) records.push_back(SubmissionOf(entry.Describe()));
  if (audit.cancelled_by.empty() || audit.has_cancellation) return records;
  v1::RecordJobRequest& record = records.emplace_back();
  record.set_job(entry.job.job());
  record.set_actor(audit.cancelled_by);
  record.set_cancelled(true);
  ToProto(audit.cancelled_at, record.mutable_time());
  return records;
}

void LogLostAuditRecord(const v1::RecordJobRequest& record, std::string_view why) {
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

}  // namespace muster
