// The format of job records: one validator for every program that receives them.
#ifndef MUSTER_SERVICES_COMMON_JOBS_JOB_RECORD_H_
#define MUSTER_SERVICES_COMMON_JOBS_JOB_RECORD_H_

#include <cstddef>

#include "absl/status/status.h"
#include "muster/v1/jobs.pb.h"

namespace muster {

inline constexpr size_t kMaxJobOutput = size_t{32} << 10;  // bytes of one record
inline constexpr size_t kMaxJobRecord = size_t{48} << 10;  // serialised
inline constexpr size_t kMaxOutputs = size_t{32} << 10;    // bytes of a deployment on one node
inline constexpr int kMaxOutputCount = 64;
inline constexpr size_t kMaxJobRecords = size_t{256} << 10;  // of one message

// Checks size and shape of a record that a node made: names, numbers, times, and the limits of
// jobs.proto. INVALID_ARGUMENT (INVALID_JOB_RECORD). A record whose kind this program does not know
// is accepted: it may be of a newer version.
absl::Status ValidateJobRecord(const v1::JobRecord& record);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_JOB_RECORD_H_
