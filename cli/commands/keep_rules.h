// The rules of retention on the command line: "age=30d,runs=1000,bytes=500G", or "all".
#ifndef MUSTER_CLI_COMMANDS_KEEP_RULES_H_
#define MUSTER_CLI_COMMANDS_KEEP_RULES_H_

#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/runs.pb.h"

namespace muster::cli {

// Parses the value of --keep. Rules that it does not name do not apply.
absl::StatusOr<v1::RetentionRules> ParseKeepRules(const std::string& text);

// Returns the rules in the same syntax.
std::string KeepRulesText(const v1::RetentionRules& rules);

// Returns the value of the key "retention" of the aggregator's configuration.
std::string KeepRulesYaml(const v1::RetentionRules& rules);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_KEEP_RULES_H_
