// The records of jobs in the audit log.
#ifndef MUSTER_SERVICES_RELAY_JOBS_AUDIT_RECORDS_H_
#define MUSTER_SERVICES_RELAY_JOBS_AUDIT_RECORDS_H_

#include <string_view>
#include <vector>

#include "muster/v1/audit.pb.h"
#include "services/relay/jobs/job_table.h"

namespace muster {

// Returns the records of the job that the audit log lacks.
std::vector<v1::RecordJobRequest> MissingAuditRecords(const JobTable::Entry& entry);

// Logs the content of a record that the audit log will never have.
void LogLostAuditRecord(const v1::RecordJobRequest& record, std::string_view why);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_AUDIT_RECORDS_H_
