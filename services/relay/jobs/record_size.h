// The sizes of a record.
#ifndef MUSTER_SERVICES_RELAY_JOBS_RECORD_SIZE_H_
#define MUSTER_SERVICES_RELAY_JOBS_RECORD_SIZE_H_

#include <cstdint>

#include "muster/v1/jobs.pb.h"

namespace muster {

// Returns the bytes of output in the record.
inline int64_t OutputBytes(const v1::JobRecord& record) {
  return static_cast<int64_t>(record.output().data().size());
}

// Returns bytes: of the record, and of its frame in the log (rounded up).
inline int64_t SizeInLog(const v1::JobRecord& record) {
  constexpr int64_t kFrame = 32;
  return static_cast<int64_t>(record.ByteSizeLong()) + kFrame;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_RELAY_JOBS_RECORD_SIZE_H_
