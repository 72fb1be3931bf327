// Connects a command to the services.
#ifndef MUSTER_CLI_RPC_SESSION_H_
#define MUSTER_CLI_RPC_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/rpc/client.h"

namespace muster::cli {

// Returns the context file to use: `option` (--context) if it is given, else $MUSTER_CONTEXT, else
// $MUSTER_HOME/context.json.
absl::StatusOr<std::string> ContextFile(const std::string& option);

// Reads and checks that file.
absl::StatusOr<OperatorContext> ReadCheckedContext(const std::string& context_option);

// Returns a client with the identity in that file.
absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& context_option);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_SESSION_H_
