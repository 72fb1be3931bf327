// Shared files in the output of commands.
#ifndef MUSTER_CLI_COMMANDS_SHARE_VIEW_H_
#define MUSTER_CLI_COMMANDS_SHARE_VIEW_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/commands/command.h"
#include "cli/output/json_view.h"
#include "muster/v1/shares.pb.h"

namespace muster::cli {

// Returns "in-transit", "delivered", ...
std::string StateWord(v1::ShareState state);

// Returns the time of expiry for people, or "never".
std::string Expiry(const v1::SharedFile& file);
// Returns the time of sharing for people.
std::string SharedAt(const v1::SharedFile& file);

Json ToJson(const v1::Share& share);

// Prints the state of a shared file. Returns the exit code, or an error if the file cannot be
// delivered.
absl::StatusOr<int> ReportOutcome(Console& console, const CommandLine& line,
                                  const v1::Share& share);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_SHARE_VIEW_H_
