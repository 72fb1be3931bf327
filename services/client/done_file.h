// The contract between a plugin and its sidecar, as Sonobuoy defined it: a file called "done" in
// the results folder whose content is the path of the result.
#ifndef MUSTER_SERVICES_CLIENT_DONE_FILE_H_
#define MUSTER_SERVICES_CLIENT_DONE_FILE_H_

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/backoff.h"

namespace muster::client {

struct DoneFileOptions {
  std::string results_dir;
  // How long the done file has to stay: another sidecar may take it away to add to the results.
  std::chrono::milliseconds delay{5000};
  std::chrono::milliseconds poll{1000};
  // How it waits for one of these times; false if the stop came first.
  std::function<bool(absl::Duration, const std::stop_token&)> wait = WaitFor;
};

// Waits for the done file; returns the path of the result it names: a regular file in the results
// folder (a relative path is below it), or for a folder the archive of it. Errors mean that the
// plugin is done and its result cannot be used: DONE_FILE_INVALID, DONE_FILE_OUTSIDE, NOT_A_FILE,
// FILE_NOT_FOUND, FILE_NOT_ACCESSIBLE, ARCHIVE_FAILED. CANCELLED (INTERRUPTED) on `stop`.
absl::StatusOr<std::string> WaitForDoneFile(const DoneFileOptions& options,
                                            const std::stop_token& stop);

// The same without waiting: the result that the done file in `results_dir` names now. NOT_FOUND
// (FILE_NOT_FOUND) may mean the done file as well as the result.
absl::StatusOr<std::string> ResultOfDoneFile(const std::string& results_dir);

// Whether there is a done file.
bool HasDoneFile(const std::string& results_dir);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_DONE_FILE_H_
