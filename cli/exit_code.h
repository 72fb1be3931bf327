// The exit codes of the program. docs/cli.md lists them for users.
#ifndef MUSTER_CLI_EXIT_CODE_H_
#define MUSTER_CLI_EXIT_CODE_H_

#include <string>

#include "absl/status/status.h"

namespace muster::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;  // a local error: a file, a missing context
inline constexpr int kExitUsage = 2;  // invalid arguments

// The state of a run: `status`, `wait` and `run --wait`.
inline constexpr int kExitRunErrors = 3;      // complete, but some results are errors
inline constexpr int kExitRunFailed = 4;      // without an archive
inline constexpr int kExitRunCancelled = 5;   // by an operator
inline constexpr int kExitRunTimedOut = 6;    // complete, but some results are timed out
inline constexpr int kExitRunUnfinished = 7;  // the run has not ended
inline constexpr int kExitOtherState =
    8;  // the run ended in another state than `wait --until` names

inline constexpr int kExitJobFailed = 9;  // a node did not run the command to exit code 0

inline constexpr int kExitDamaged = 10;  // `verify` found damage

inline constexpr int kExitRpcBase = 64;       // plus the gRPC status code of a service
inline constexpr int kExitInterrupted = 130;  // by Ctrl-C or SIGTERM

// Marks `status` as the answer of a service. `subject` names the object and the service: "run 3f2a
// at 10.0.0.5:7440". Separates the reason and the next step of a refusal that has only a message.
absl::Status FromService(absl::Status status, const std::string& subject);

// Returns an error of the arguments.
absl::Status UsageError(const std::string& message, const std::string& next_step);

// Marks an error as one of the arguments: the exit code is 2. Adds the name of the option to the
// message, if there is one. Keeps the reason and the next step.
absl::Status AsUsageError(const absl::Status& status, const std::string& option = "");

// Returns the refusal of a duration (INVALID_TIMEOUT) as an error of its option: "--lost-after 5s
// is outside ...". Returns other errors unchanged.
absl::Status WithTimeoutOption(const absl::Status& status);

// Adds a subject to a local error. An answer of a service keeps its own subject.
absl::Status WithSubject(absl::Status status, const std::string& subject);

// Returns the subject of the error, or an empty text.
std::string SubjectOf(const absl::Status& status);

int ExitCodeOf(const absl::Status& status);

}  // namespace muster::cli

#endif  // MUSTER_CLI_EXIT_CODE_H_
