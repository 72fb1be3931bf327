// The record that ends a job.
#ifndef MUSTER_SERVICES_COMMON_JOBS_FINAL_RECORD_H_
#define MUSTER_SERVICES_COMMON_JOBS_FINAL_RECORD_H_

#include <string>
#include <string_view>

#include "muster/v1/jobs.pb.h"
#include "services/common/base/utf8.h"

namespace muster {

// Sets the outcome with its reason. `detail` is cut at the 1024 characters of jobs.proto; it may
// name a file by any bytes.
inline void SetOutcome(v1::JobOutcome outcome, std::string_view reason, std::string_view detail,
                       v1::JobRecord::Final* final) {
  constexpr size_t kMaxDetail = 1024;
  final->set_outcome(outcome);
  final->set_reason(std::string(reason));
  final->set_detail(std::string(CutUtf8(CleanUtf8(detail), kMaxDetail)));
}

inline v1::JobRecord FinalRecord(v1::JobOutcome outcome, std::string_view reason,
                                 std::string_view detail) {
  v1::JobRecord record;
  SetOutcome(outcome, reason, detail, record.mutable_final());
  return record;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_FINAL_RECORD_H_
