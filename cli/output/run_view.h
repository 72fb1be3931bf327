// The status of a run, for people.
#ifndef MUSTER_CLI_OUTPUT_RUN_VIEW_H_
#define MUSTER_CLI_OUTPUT_RUN_VIEW_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/v1/runs.pb.h"
#include "muster/v1/status.pb.h"
#include "muster/v1/verification.pb.h"

namespace muster::cli {

// The content of one view of a run.
struct RunView {
  v1::RunStatus status;                    // without pairs
  std::vector<v1::PairStatus> stragglers;  // pending, and need attention
  std::vector<v1::PairStatus> waiting;     // not started
  std::vector<v1::PairStatus> failed;      // an error or timed out
  std::vector<v1::PairStatus> active;      // pending, with progress
  std::string note;                        // a line for the user; may be empty
  bool pinned = false;
  std::vector<v1::DamagedResult> damaged;  // the archive without plugin and node
};

// Returns the number of pending pairs with this reason.
int64_t ReasonCount(const v1::RunStatus& status, v1::Reason wanted);

// Makes a view of an answer of the status service with the pairs to show.
RunView ViewOf(v1::RunStatus status);

// Makes a view of the aggregator's run. It is up to date, but has no plugins.
RunView ViewOf(const v1::Run& run);

// Makes a view of the aggregator's run with the details of the status service. Returns nothing if
// only one of them knows that the run has ended: a pair would seem to have no outcome.
std::optional<RunView> ViewOf(const v1::Run& run, RunView details);

// Returns "5 of 8 results, 1 error, 2 timed out".
std::string CountsText(const v1::ResultCounts& counts);

// Returns "not responding".
std::string ReasonText(v1::Reason reason);

// Returns one line for a log: "running: 5 of 8 results, 1 error".
std::string SummaryLine(const RunView& view);

// Returns it as a sentence: "Run 3f2a is complete: 8 of 8 results."
std::string SummarySentence(const RunView& view);

// Returns the run with its title, a row with a bar for each plugin, errors and progress. Lines end
// with a newline. `width`: of the terminal; 0 without one.
std::string Render(const RunView& view, absl::Time now, int width, bool color = false);

// Returns the exit code for the state and the counts of a run (exit_code.h); 0 while it has not
// ended.
int OutcomeExitCode(v1::RunState state, const v1::ResultCounts& counts);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_RUN_VIEW_H_
