#include "services/common/rpc/call_limits.h"

#include "services/common/identity/identity.h"
#include "services/common/rpc/limits.h"

namespace muster {
namespace {

CallLimits LimitsOf(Role role) {
  switch (role) {
    case Role::kNode:
    case Role::kRunNode:
    case Role::kRunViewer:
      return {{kCallsOfNode, kCallBurstOfNode}, kWaitingCallsOfNode, kWaitingCallsOfNode};
    default:
      return {{kCallsOfMany, kCallBurstOfMany}, kWaitingCallsOfMany, kWaitingForwardedCalls};
  }
}

}  // namespace

CallLimits CallLimitsOf(const Caller& caller) {
  CallLimits limits = LimitsOf(RoleOf(caller.identity));
  if (caller.via) limits.waiting_calls = LimitsOf(RoleOf(*caller.via)).waiting_calls;
  return limits;
}

}  // namespace muster
