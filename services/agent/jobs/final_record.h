// The record that ends a job.
#ifndef MUSTER_SERVICES_AGENT_JOBS_FINAL_RECORD_H_
#define MUSTER_SERVICES_AGENT_JOBS_FINAL_RECORD_H_

#include <string>
#include <string_view>

#include "muster/v1/jobs.pb.h"
#include "services/common/base/utf8.h"

namespace muster {

// `detail` is cut at the 1024 characters of jobs.proto; it may name a file by any bytes.
inline v1::JobRecord FinalRecord(v1::JobOutcome outcome, std::string_view reason,
                                 std::string_view detail) {
  constexpr size_t kMaxDetail = 1024;
  v1::JobRecord record;
  record.mutable_final()->set_outcome(outcome);
  record.mutable_final()->set_reason(std::string(reason));
  record.mutable_final()->set_detail(std::string(CutUtf8(CleanUtf8(detail), kMaxDetail)));
  return record;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_FINAL_RECORD_H_
