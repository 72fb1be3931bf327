// Shared files as the commands show them.
#ifndef MUSTER_CLI_COMMANDS_SHARE_VIEW_H_
#define MUSTER_CLI_COMMANDS_SHARE_VIEW_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/commands/command.h"
#include "cli/output/json_view.h"
#include "muster/v1/shares.pb.h"

namespace muster::cli {

// "on the way", "delivered", ...
std::string StateWord(v1::ShareState state);

// When it expires, for a person; "never" if it does not.
std::string Expiry(const v1::SharedFile& file);
// When its source shared it, for a person.
std::string SharedAt(const v1::SharedFile& file);

Json ToJson(const v1::Share& share);

// Prints what became of a file; its exit code, or an error that says why it did not arrive.
absl::StatusOr<int> TellOutcome(Console& console, const CommandLine& line, const v1::Share& share);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_SHARE_VIEW_H_
