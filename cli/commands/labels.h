// Labels of nodes on the command line.
#ifndef MUSTER_CLI_COMMANDS_LABELS_H_
#define MUSTER_CLI_COMMANDS_LABELS_H_

#include <google/protobuf/map.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::cli {

using LabelMap = google::protobuf::Map<std::string, std::string>;

// Adds each "key=value". Returns a usage error for any other text and for a repeated key.
absl::Status AddLabels(const std::vector<std::string>& texts, LabelMap* labels);

// Returns "a=1,b=", sorted by key, or "-" for no labels.
std::string LabelText(const LabelMap& labels);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_LABELS_H_
