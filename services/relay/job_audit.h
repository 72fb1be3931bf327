// The audit records of jobs.
#ifndef MUSTER_SERVICES_RELAY_JOB_AUDIT_H_
#define MUSTER_SERVICES_RELAY_JOB_AUDIT_H_

#include <grpcpp/channel.h>

#include <memory>

#include "muster/v1/audit.pb.h"

namespace muster {

// Sends the record to the aggregator and does not wait. Jobs do not depend on the aggregator: if
// the record is lost, this relay logs a warning with its content. `aggregator` may be null.
void RecordJob(const std::shared_ptr<grpc::Channel>& aggregator, v1::RecordJobRequest record);

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOB_AUDIT_H_
