// The status of a run without its pairs: counts, reasons, the estimated end, stragglers.
#ifndef MUSTER_SERVICES_STATUS_BOARD_RUN_SUMMARY_H_
#define MUSTER_SERVICES_STATUS_BOARD_RUN_SUMMARY_H_

#include <string>

#include "absl/time/time.h"
#include "muster/v1/changes.pb.h"
#include "muster/v1/status.pb.h"
#include "services/status/board/pair_table.h"
#include "services/status/board/reasons.h"

namespace muster {

// Everything but the id and the doubt of the service. `created` is the creation of the run in
// monotonic time. Removes finished pairs from the ends of `begun` of each plugin.
v1::RunStatus MakeRunSummary(const v1::Run& run, PairTable& pairs, const Outlook& outlook,
                             absl::Duration created, const Moment& now);

// Removes the state of other pairs, for a caller that may see only pairs of `plugin`, or only one
// pair. An empty `plugin` means any.
void RestrictToPlugin(const std::string& plugin, v1::RunStatus* status);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_RUN_SUMMARY_H_
