// What the program's exit code says. docs/cli.md lists the same for users.
#ifndef MUSTER_CLI_EXIT_CODE_H_
#define MUSTER_CLI_EXIT_CODE_H_

#include <string>

#include "absl/status/status.h"

namespace muster::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;  // a program's error: a file, a missing context, no answer
inline constexpr int kExitUsage = 2;  // the arguments

// How a run stands or ended; `status`, `wait` and `run --wait`.
inline constexpr int kExitRunErrors = 3;     // complete, but some results are errors
inline constexpr int kExitRunFailed = 4;     // it ended without an archive
inline constexpr int kExitRunCancelled = 5;  // by an operator
inline constexpr int kExitRunTimedOut = 6;   // complete, but some results did not come in time
inline constexpr int kExitRunGoesOn = 7;     // it has not ended
inline constexpr int kExitOtherEnd = 8;      // it ended, but not as `wait --until` hoped

inline constexpr int kExitJobFailed = 9;  // a node did not run the command to exit code 0

inline constexpr int kExitRpcBase = 64;  // plus the code of the gRPC status that a service answered
inline constexpr int kExitInterrupted = 130;  // by Ctrl-C or SIGTERM

// Marks `status` as what a service answered, and says which service, about what: "run 3f2a at
// 10.0.0.5:7440".
absl::Status FromService(absl::Status status, const std::string& subject);

// Marks `status` as a fault of the arguments.
absl::Status UsageError(const std::string& message, const std::string& next_step);

// Says what a local error is about. An answer that a service gave keeps its own subject.
absl::Status About(absl::Status status, const std::string& subject);

// What the error is about, or an empty text.
std::string SubjectOf(const absl::Status& status);

int ExitCodeOf(const absl::Status& status);

}  // namespace muster::cli

#endif  // MUSTER_CLI_EXIT_CODE_H_
