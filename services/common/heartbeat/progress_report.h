// Validation of progress reports, in heartbeats and in ReportProgress.
#ifndef MUSTER_SERVICES_COMMON_HEARTBEAT_PROGRESS_REPORT_H_
#define MUSTER_SERVICES_COMMON_HEARTBEAT_PROGRESS_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "muster/v1/status.pb.h"

namespace muster {

// The limits of the progress of a pair: of a count, of the bytes of the message and of a name, and
// of the names in a list.
inline constexpr int64_t kMaxProgressCount = 1'000'000'000'000;
inline constexpr size_t kMaxProgressMessage = 4096;
inline constexpr size_t kMaxProgressName = 1024;
inline constexpr int kMaxProgressNames = 100;

// Returns whether the report has the append form, which adds to the previous report.
bool IsAppend(const v1::ReportProgressRequest& report);

// INVALID_PROGRESS if a count is negative or above 10^12.
absl::Status CheckProgress(const v1::ReportProgressRequest& report);

// Cuts message and names to their limits. Names before the newest 100 of a list become empty: they
// are not stored, but counted.
void CutProgress(v1::ReportProgressRequest* report);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_HEARTBEAT_PROGRESS_REPORT_H_
