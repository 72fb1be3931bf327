// Next steps after the failure of a command on a node.
#ifndef MUSTER_CLI_OUTPUT_JOB_NEXT_STEP_H_
#define MUSTER_CLI_OUTPUT_JOB_NEXT_STEP_H_

#include <string>

#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// Returns the next step of the table of errors for the reason or the outcome of a final record;
// empty if the command succeeded, was cancelled or exited with another code. `in_container`: the
// command has an image.
std::string NextStepAfter(const v1::JobRecord::Final& final, bool in_container);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_JOB_NEXT_STEP_H_
