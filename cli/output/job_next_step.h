// Next steps after the failure of a command on a node.
#ifndef MUSTER_CLI_OUTPUT_JOB_NEXT_STEP_H_
#define MUSTER_CLI_OUTPUT_JOB_NEXT_STEP_H_

#include <map>
#include <string>
#include <vector>

#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// Returns the next step of the table of errors for the reason or the outcome of a final record;
// empty if the command succeeded, was cancelled or exited with another code. `in_container`: the
// command has an image.
std::string NextStepAfter(const v1::JobRecord::Final& final, bool in_container);

// The next steps after the failures of one job. Not thread-safe.
class NextSteps {
 public:
  // `in_container`: the command has an image.
  void Add(const std::string& node, const v1::JobRecord::Final& final, bool in_container);

  // Each step once, with the job, or the deployment if it is set. A step after the failure of one
  // node names this node.
  std::vector<std::string> Texts(const std::string& job, const std::string& deployment = "") const;

 private:
  struct Nodes {
    std::string first;
    bool has_more = false;
  };
  std::map<std::string, Nodes> steps_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_JOB_NEXT_STEP_H_
