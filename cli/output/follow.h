// Following a run to its end.
#ifndef MUSTER_CLI_OUTPUT_FOLLOW_H_
#define MUSTER_CLI_OUTPUT_FOLLOW_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "cli/output/run_view.h"

namespace muster::cli {

struct FollowOutput {
  std::ostream& stream;
  bool is_terminal = false;  // draw in place; else a line for each change
  // How a change is written where it is no terminal; SummaryLine with the time if empty.
  std::function<std::string(const RunView&)> line;
};

// Fetches each second and shows it, until the run has ended; the last view. A service that is away
// for less than five minutes is waited for, and said to be away. CANCELLED if the user interrupts
// (CatchInterrupts was called before the client was made).
absl::StatusOr<RunView> Follow(const std::function<absl::StatusOr<RunView>()>& fetch,
                               const FollowOutput& output);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_FOLLOW_H_
