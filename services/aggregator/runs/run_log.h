// Writes meta/run.log, the events of a run for readers of its archive.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_RUN_LOG_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_RUN_LOG_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/store/state_store.h"

namespace muster {

// Returns the run's audit records, oldest first, one JSON object per line: time, level, msg, by,
// and, if they apply, plugin, node and text. Returns at most `max_bytes`; a last line reports
// omitted records.
absl::StatusOr<std::string> RunLog(StateStore& store, const std::string& run,
                                   size_t max_bytes = size_t{4} << 20);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_RUN_LOG_H_
