// Who hangs below which relay.
#ifndef MUSTER_CLI_RPC_ATTACHED_H_
#define MUSTER_CLI_RPC_ATTACHED_H_

#include <map>
#include <optional>
#include <string>

#include "muster/v1/attachment.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

using AttachedMap = std::map<std::string, v1::ListAttachedResponse::Child>;

// By name, those that are attached and those that were in the last week; nothing if the relay at
// the centre cannot be asked.
std::optional<AttachedMap> FetchAttached(const OperatorContext& context);

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_ATTACHED_H_
