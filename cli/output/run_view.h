// A run as a person watches it.
#ifndef MUSTER_CLI_OUTPUT_RUN_VIEW_H_
#define MUSTER_CLI_OUTPUT_RUN_VIEW_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/runs.pb.h"
#include "muster/v1/status.pb.h"

namespace muster::cli {

// What is shown of one run at one moment.
struct RunView {
  v1::RunStatus status;                    // without pairs
  std::vector<v1::PairStatus> stragglers;  // unfinished, and they need a look
  std::vector<v1::PairStatus> troubled;    // ended with an error or timed out
  std::vector<v1::PairStatus> active;      // unfinished, report progress, and all is well
  std::string note;                        // a line for the reader; may be empty
};

// From what the status service says, with the pairs that are to be shown.
RunView ViewOf(v1::RunStatus status);

// From what the aggregator says: no rows for plugins, but the truth of this moment.
RunView ViewOf(const v1::Run& run);

// "5 of 8 results, 1 error, 2 timed out".
std::string CountsText(const v1::ResultCounts& counts);

// One line for a log: "running: 5 of 8 results, 1 error".
std::string SummaryLine(const RunView& view);

// The run, a row with a bar for each plugin, errors, progress. Lines end with a newline.
std::string Render(const RunView& view, absl::Time now, absl::TimeZone zone, int width);

// The exit code for how the run ended (exit_code.h), by its state and counts; 0 while it has not.
int OutcomeExitCode(v1::RunState state, const v1::ResultCounts& counts);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_RUN_VIEW_H_
