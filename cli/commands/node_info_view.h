// The information of a node about itself: its adapters, its disk, its program.
#ifndef MUSTER_CLI_COMMANDS_NODE_INFO_VIEW_H_
#define MUSTER_CLI_COMMANDS_NODE_INFO_VIEW_H_

#include "absl/time/time.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "muster/v1/attachment.pb.h"

namespace muster::cli {

// Returns JSON with the field names of the proto; sizes in bytes.
Json ToJson(const v1::NodeInfo& info);

// Adds rows with the program, the adapters and the disk.
void AddInfo(const v1::NodeInfo& info, absl::Time now, Table* table);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_NODE_INFO_VIEW_H_
