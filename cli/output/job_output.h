// Shows what comes of a job as it comes.
#ifndef MUSTER_CLI_OUTPUT_JOB_OUTPUT_H_
#define MUSTER_CLI_OUTPUT_JOB_OUTPUT_H_

#include <map>
#include <string>

#include "cli/output/console.h"
#include "cli/output/node_lines.h"
#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// Lines of nodes go to stdout as "<node>: line", or as a JSON record each. On a terminal one more
// line says how far the job is; at the end who failed, and why. Not thread-safe.
class JobOutput {
 public:
  JobOutput(Console& console, bool json);

  void Take(const v1::WatchJobResponse& response);

  // Says what there is to say at the end, and gives the exit code: 0 if every node ended with 0.
  int Finish(const v1::Job& job);

 private:
  void TakeRecord(const v1::JobRecord& record);
  // Prints how much output of the node was left out since its last line.
  void PrintCut(const std::string& node);
  void PrintLine(const std::string& node, v1::JobStream stream, std::string_view line);
  void ShowSummary(const v1::Job& job);
  void HideSummary();

  Console& console_;
  const bool json_;
  NodeLines lines_;
  std::map<std::string, std::string> failures_;  // the first of them
  size_t failed_ = 0;
  std::map<std::string, int64_t> cut_;  // bytes that were left out and not printed, by node
  v1::Job job_;
  bool summary_shown_ = false;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_JOB_OUTPUT_H_
