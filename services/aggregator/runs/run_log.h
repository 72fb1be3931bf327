// What happened in a run, for the people who open its archive: meta/run.log.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_RUN_LOG_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_RUN_LOG_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/store/state_store.h"

namespace muster {

// The run's audit records so far, oldest first, a JSON object a line: time, level, msg, by, and as
// far as they apply plugin, node and text. At most `max_bytes`; a last line then says that more was
// left out.
absl::StatusOr<std::string> RunLog(StateStore& store, const std::string& run,
                                   size_t max_bytes = size_t{4} << 20);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_RUN_LOG_H_
