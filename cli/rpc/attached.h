// The relay to which each node and relay is attached.
#ifndef MUSTER_CLI_RPC_ATTACHED_H_
#define MUSTER_CLI_RPC_ATTACHED_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/identity/context.h"

namespace muster::cli {

using AttachedMap = std::map<std::string, v1::ListAttachedResponse::Child>;

// Returns by name the nodes and relays that are attached, or were attached in the last week; of
// these only `name`, if it is not empty and the root relay knows this filter.
absl::StatusOr<AttachedMap> ListAllAttached(const OperatorContext& context,
                                            const std::string& name = "");

// The same. Returns nothing if the context names no relay, or if the root relay does not answer.
std::optional<AttachedMap> FetchAttached(const OperatorContext& context,
                                         const std::string& name = "");

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_ATTACHED_H_
