// The table of authorisation: which roles may call an RPC, on which resources.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_RPC_TABLE_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_RPC_TABLE_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/rpc_authorization.h"

namespace muster {

// The bits of sets of roles, and of kinds of resources.
constexpr uint32_t BitOf(Role role) { return uint32_t{1} << static_cast<int>(role); }
constexpr uint32_t BitOf(Resource::Kind kind) { return uint32_t{1} << static_cast<int>(kind); }

// The resources that some roles may access with a method.
struct RpcGrant {
  uint32_t roles = 0;
  uint32_t kinds = 0;
};

// One RPC.
struct RpcRow {
  std::string_view method;
  std::array<RpcGrant, 3> grants;
  // The roles that may call it on behalf of others.
  uint32_t forwarders = BitOf(Role::kGateway);
};

// Returns all rows. A method without one is refused.
absl::Span<const RpcRow> RpcTable();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_RPC_TABLE_H_
