// Why a container was ended: it outlives the agent.
#ifndef MUSTER_SERVICES_AGENT_JOBS_STOP_MARK_H_
#define MUSTER_SERVICES_AGENT_JOBS_STOP_MARK_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// The reason to end a command early.
enum class JobStop { kNone, kCancelled, kTimedOut, kStateTooLarge, kAgentStops };

// The first signal to a container of a job. A stop of the agent has none: the next process of the
// agent follows a container that survives it.
struct StopMark {
  JobStop why = JobStop::kNone;
  absl::Time time;     // by the wall clock
  std::string detail;  // the limit that the state exceeded

  // The text is for a journal. JOB_DAMAGED for another one.
  std::string ToText() const;
  static absl::StatusOr<StopMark> FromText(std::string_view text);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_JOBS_STOP_MARK_H_
