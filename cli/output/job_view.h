// Jobs and their records, for people and for programs.
#ifndef MUSTER_CLI_OUTPUT_JOB_VIEW_H_
#define MUSTER_CLI_OUTPUT_JOB_VIEW_H_

#include <string>

#include "cli/output/json_view.h"
#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// "exited", "unknown", "unreachable", "refused", ...
std::string OutcomeWord(v1::JobOutcome outcome);
// "running", "ended", "cancelled".
std::string StateWord(v1::JobState state);

// Field names as in jobs.proto. Output is text where it is UTF-8, else base64 in `data_base64`.
Json ToJson(const v1::Job& job);
Json ToJson(const v1::JobRecord& record);

// "12 of 20 nodes done (1 failed), 6 running, 2 to begin".
std::string SummaryLine(const v1::Job& job);

// "exit code 2", "refused: POLICY_REFUSED: ...", for a node that did not end with 0; empty for one
// that did.
std::string FailureText(const v1::JobRecord::Final& final);

// The arguments as they could be typed.
std::string TypedCommand(const v1::Job& job);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_JOB_VIEW_H_
