// The encoding of arguments: their text is sent in messages, which are UTF-8.
#ifndef MUSTER_CLI_ARGUMENT_TEXT_H_
#define MUSTER_CLI_ARGUMENT_TEXT_H_

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace muster::cli {

// Returns a usage error that names the first option or argument of `parsed` whose value is not
// UTF-8. Paths may be any bytes. The text of `submit --error` is not checked: it must be delivered,
// so the client library cleans it.
absl::Status CheckArgumentText(const CLI::App& parsed);

}  // namespace muster::cli

#endif  // MUSTER_CLI_ARGUMENT_TEXT_H_
