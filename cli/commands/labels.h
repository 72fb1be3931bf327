// Labels of nodes on the command line.
#ifndef MUSTER_CLI_COMMANDS_LABELS_H_
#define MUSTER_CLI_COMMANDS_LABELS_H_

#include <google/protobuf/map.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster::cli {

using LabelMap = google::protobuf::Map<std::string, std::string>;

// Adds each "key=value". A usage error for anything else, or a key that comes twice.
absl::Status AddLabels(const std::vector<std::string>& texts, LabelMap* labels);

// "a=1,b=": by key, "-" for none.
std::string LabelText(const LabelMap& labels);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_LABELS_H_
