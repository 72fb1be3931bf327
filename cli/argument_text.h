// Checks the values of all options and arguments: they are UTF-8, because messages contain them,
// and not empty, because an empty value is usually an unset variable of a script.
#ifndef MUSTER_CLI_ARGUMENT_TEXT_H_
#define MUSTER_CLI_ARGUMENT_TEXT_H_

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace muster::cli {

// Returns a usage error that names the first option or argument of `parsed` whose value is empty or
// not UTF-8. Free text, `--legacy-host` and the arguments of the program of `exec` may be empty.
// Paths may be any bytes. The text of `submit --error` is not checked: it must be delivered, so the
// client library cleans it.
absl::Status CheckArgumentText(const CLI::App& parsed);

}  // namespace muster::cli

#endif  // MUSTER_CLI_ARGUMENT_TEXT_H_
