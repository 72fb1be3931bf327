// Follows a run until it is complete, failed or cancelled.
#ifndef MUSTER_CLI_OUTPUT_FOLLOW_H_
#define MUSTER_CLI_OUTPUT_FOLLOW_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/output/run_view.h"

namespace muster::cli {

struct FollowOutput {
  std::ostream& stream;
  std::ostream& messages;    // for errors that are retried
  bool is_terminal = false;  // draw in place, else print a line for each change
  bool color = false;        // of what is drawn
  // Formats a change if the stream is not a terminal; SummaryLine with the time if empty.
  std::function<std::string(const RunView&)> line;
  absl::Duration interval = absl::Seconds(1);  // between requests
  // How long an unreachable service is asked again after its last answer.
  absl::Duration unreachable_limit = absl::Minutes(5);
};

// Fetches and shows the run every second until it is complete, failed or cancelled; returns the
// last view. Retries an unreachable service for five minutes and an unknown run for ten seconds,
// and reports the first error and the next answer. Returns CANCELLED if the user interrupts.
// CatchInterrupts must be called before the client is created.
absl::StatusOr<RunView> Follow(const std::function<absl::StatusOr<RunView>()>& fetch,
                               const FollowOutput& output);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_FOLLOW_H_
