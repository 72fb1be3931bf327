// Checks any bytes as a record of a job. A valid one fits into a message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "muster/v1/jobs.pb.h"
#include "services/common/jobs/job_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::v1::JobRecord record;
  if (record.ParseFromArray(data, static_cast<int>(size))) {
    if (muster::ValidateJobRecord(record).ok() && record.ByteSizeLong() > muster::kMaxJobRecord) {
      std::abort();
    }
  }
  return 0;
}
