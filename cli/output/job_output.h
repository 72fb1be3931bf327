// Shows the output and the progress of a job.
#ifndef MUSTER_CLI_OUTPUT_JOB_OUTPUT_H_
#define MUSTER_CLI_OUTPUT_JOB_OUTPUT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/output/console.h"
#include "cli/output/job_next_step.h"
#include "cli/output/node_lines.h"
#include "muster/v1/jobs.pb.h"

namespace muster::cli {

// kOutput: without the failures of nodes and the summary, which the caller prints at the end.
enum class JobReport { kAll, kOutput };

// Prints the lines of the nodes to stdout as "<node>: line", or each record as JSON. On a terminal,
// a last line shows the progress of the job. At the end, prints the failed nodes and the reasons.
// Not thread-safe.
class JobOutput {
 public:
  JobOutput(Console& console, bool json, JobReport report = JobReport::kAll);

  void HandleResponse(const v1::WatchJobResponse& response);

  // Returns those of `nodes` without a record so far.
  std::vector<std::string> WithoutAnswer(const std::vector<std::string>& nodes) const;

  // Prints a message on stderr, above the progress of the job.
  void PrintNotice(const std::string& message);

  // Returns the job of the last response that had it.
  const v1::Job& job() const { return job_; }

  // Removes the progress of the job from the terminal.
  void HideSummary();

  // Prints the number of failures that were not printed, a summary, and the next steps after those
  // failures that have one. Returns the exit code: 0 if the command succeeded on every node.
  int Finish(const v1::Job& job);

  // Returns true if the command failed on a node whose final record was handled.
  bool has_failures() const { return !failed_.empty(); }

 private:
  void HandleRecord(const v1::JobRecord& record, std::optional<int64_t> position);
  // Prints how much output of the node was omitted since its last line.
  void PrintCut(const std::string& node);
  void PrintUnverified(const v1::JobRecord& record);
  void PrintRemark(const v1::JobRecord& record);
  // Notes whether the node failed. Returns true if that is new.
  bool SetFailed(const v1::JobRecord& record);
  // Prints the failure, or that a node succeeded after it was given up.
  void PrintOutcome(const v1::JobRecord& record);
  void PrintLine(const std::string& node, v1::JobStream stream, std::string_view line);
  void ShowSummary(const v1::Job& job);

  Console& console_;
  const bool json_;
  const JobReport report_;
  NodeLines lines_;
  std::set<std::string> answered_;      // nodes with a record
  std::set<std::string> failed_;        // nodes whose last final record is a failure
  std::map<std::string, int64_t> cut_;  // omitted bytes not yet printed, by node
  NextSteps next_steps_;
  v1::Job job_;
  bool summary_shown_ = false;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_JOB_OUTPUT_H_
