// The changes that a heartbeat or a progress report makes to the Work of a pair.
#ifndef MUSTER_SERVICES_STATUS_BOARD_ACTIVITY_H_
#define MUSTER_SERVICES_STATUS_BOARD_ACTIVITY_H_

#include "absl/time/time.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/status.pb.h"
#include "services/status/board/pair.h"

namespace muster {

// Applies the phase, the message and the fault of an activity. Returns whether one of them changed,
// or the pair was abandoned before.
bool ApplyActivity(const v1::Activity& activity, Work& work);

// Returns whether the agent of the pair can work: it has no fault, and is not about to report one.
bool CanWork(const Work& work);

// Applies a progress report. Returns whether the progress moved.
bool ApplyReport(const v1::ReportProgressRequest& report, absl::Time now, Work& work);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_ACTIVITY_H_
