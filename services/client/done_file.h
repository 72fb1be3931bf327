// The contract between a plugin and its sidecar, as Sonobuoy defined it: a file called "done" in
// the results folder contains the path of the result.
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
  // The time for which the done file must exist: another sidecar may remove it to add results.
  std::chrono::milliseconds delay{5000};
  std::chrono::milliseconds poll{1000};
  // Waits for one of these times; returns false if it was stopped. Replaced in tests.
  std::function<bool(absl::Duration, const std::stop_token&)> wait = WaitFor;
};

// Waits for the done file and returns the path of the result: a regular file in the results folder
// (relative paths begin there), or the archive of a folder. The path has no symbolic links: open it
// with OpenResolved, because the plugin may put one into it. Errors mean that the plugin is done
// and its result is unusable: DONE_FILE_INVALID, DONE_FILE_OUTSIDE, NOT_A_FILE, FILE_NOT_FOUND,
// FILE_NOT_ACCESSIBLE, ARCHIVE_FAILED. Fails with CANCELLED (INTERRUPTED) on `stop`.
absl::StatusOr<std::string> WaitForDoneFile(const DoneFileOptions& options,
                                            const std::stop_token& stop);

// Returns the result that the done file in `results_dir` names now, without waiting. NOT_FOUND
// (FILE_NOT_FOUND) may refer to the done file or to the result.
absl::StatusOr<std::string> ResultOfDoneFile(const std::string& results_dir);

// Returns true if the done file exists.
bool HasDoneFile(const std::string& results_dir);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_DONE_FILE_H_
