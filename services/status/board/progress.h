// How a progress report changes what is known: the arithmetic of Sonobuoy's progress updates.
#ifndef MUSTER_SERVICES_STATUS_BOARD_PROGRESS_H_
#define MUSTER_SERVICES_STATUS_BOARD_PROGRESS_H_

#include "absl/time/time.h"
#include "muster/v1/status.pb.h"

namespace muster {

// A plain report replaces the progress. One with an append field adds to it: completed grows by
// append_completed, failures by append_failing, and with append_totals the total grows by both.
// Message and time are always the newest. Long texts are cut, long lists keep their newest entries.
void ApplyProgress(const v1::ReportProgressRequest& report, absl::Time now, v1::Progress* progress);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_PROGRESS_H_
