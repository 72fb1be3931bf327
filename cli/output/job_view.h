// Jobs and their records, for people and for programs.
#ifndef MUSTER_CLI_OUTPUT_JOB_VIEW_H_
#define MUSTER_CLI_OUTPUT_JOB_VIEW_H_

#include <string>

#include "cli/output/json_view.h"
#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// Returns "exited", "unknown", "unreachable", "refused", ...
std::string OutcomeWord(v1::JobOutcome outcome);
// Returns "running", "ended", "cancelled".
std::string StateWord(v1::JobState state);

// Return JSON with the field names of jobs.proto. Output is text if it is UTF-8, else base64 in
// `data_base64`.
Json ToJson(const v1::Job& job);
Json ToJson(const v1::JobRecord& record);
Json ToJson(const v1::JobRecord::Final& final);
// By name; null for a sensitive output, whose value stays on the node.
Json ToJson(const v1::JobRecord::Outputs& outputs);

// Returns the number of targets with a final record.
int64_t DoneCount(const v1::Job& job);

// Returns "12 of 20 nodes done (1 failed), 6 running, 2 waiting".
std::string SummaryLine(const v1::Job& job);

// Returns the outcome in words: "timed out".
std::string OutcomePhrase(v1::JobOutcome outcome);

// Returns "exit code 2", "OUTPUTS_INVALID: ...", "refused: POLICY_REFUSED: ...", or an empty text
// if the command exited with 0.
std::string FailureText(const v1::JobRecord::Final& final);

// Returns the same after "failed: ", unless it has its own word: "refused: ...", "timed-out: ...".
std::string OutcomeText(const v1::JobRecord::Final& final);

// Returns the text of a branch for a terminal, with the time of day for times of today.
std::string BranchText(const v1::JobRecord::Branch& branch);

// Returns the arguments quoted for a shell, "rudder -D info" for an action without arguments, or
// "deployment of hi@1.4.0". `subject`: the template of a deployment; if it is empty, the name of
// the image.
std::string QuotedCommand(const v1::Job& job, const std::string& subject = "");

// Returns "alice" for the URI of an operator, and the URI without the fleet for others.
std::string ShortName(std::string_view uri);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_JOB_VIEW_H_
