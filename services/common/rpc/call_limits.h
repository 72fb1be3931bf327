// The limits of the calls of a caller, by its role.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALL_LIMITS_H_
#define MUSTER_SERVICES_COMMON_RPC_CALL_LIMITS_H_

#include "services/common/rpc/call_admission.h"
#include "services/common/rpc/caller.h"

namespace muster {

// A peer that forwards calls has the waiting calls of all its clients.
CallLimits CallLimitsOf(const Caller& caller);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALL_LIMITS_H_
