#include "services/common/rpc/call_limits.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "gtest/gtest.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/call_admission.h"
#include "services/common/rpc/limits.h"

namespace muster {
namespace {

constexpr char kRun[] = "00000000000000aa";

// Returns the limits of a caller, whose calls the service `via` forwards, if any.
CallLimits Limits(Identity::Name name, std::optional<ServiceRole> via = std::nullopt) {
  Caller caller;
  caller.identity = {"f", std::move(name)};
  if (via) caller.via = Identity{"f", ServiceIdentity{*via, "s"}};
  return CallLimitsOf(caller);
}

void ExpectLimits(const CallLimits& limits, double rate, double burst, int64_t waiting) {
  EXPECT_EQ(limits.rate.per_second, rate);
  EXPECT_EQ(limits.rate.burst, burst);
  EXPECT_EQ(limits.waiting_calls, waiting);
}

TEST(CallLimitsTest, OwnCallsHaveTheLimitsOfTheirRole) {
  for (const Identity::Name& name :
       {Identity::Name(NodeIdentity{"n1"}), Identity::Name(RunNodeIdentity{kRun, "p", "n1"}),
        Identity::Name(RunViewerIdentity{kRun})}) {
    ExpectLimits(Limits(name), kCallsOfNode, kCallBurstOfNode, kWaitingCallsOfNode);
  }
  for (const Identity::Name& name :
       {Identity::Name(UserIdentity{"ann"}), Identity::Name(RunPluginIdentity{kRun, "p"}),
        Identity::Name(ServiceIdentity{ServiceRole::kRelay, "r1"})}) {
    ExpectLimits(Limits(name), kCallsOfMany, kCallBurstOfMany, kWaitingCallsOfMany);
  }
}

TEST(CallLimitsTest, NodeViaARelayHasAShareOfTheCallsThatTheRelayMayHave) {
  const CallLimits limits = Limits(NodeIdentity{"n1"}, ServiceRole::kRelay);
  ExpectLimits(limits, kCallsOfNode, kCallBurstOfNode, kWaitingCallsOfMany);
  EXPECT_EQ(limits.waiting_forwarded_calls, kWaitingCallsOfNode);
}

TEST(CallLimitsTest, ViewerViaAGatewayHasAShareOfTheCallsThatTheGatewayMayHave) {
  const CallLimits limits = Limits(RunViewerIdentity{kRun}, ServiceRole::kGateway);
  ExpectLimits(limits, kCallsOfNode, kCallBurstOfNode, kWaitingCallsOfMany);
  EXPECT_EQ(limits.waiting_forwarded_calls, kWaitingCallsOfNode);
}

TEST(CallLimitsTest, OperatorViaAGatewayHasALargerShare) {
  const CallLimits limits = Limits(UserIdentity{"ann"}, ServiceRole::kGateway);
  ExpectLimits(limits, kCallsOfMany, kCallBurstOfMany, kWaitingCallsOfMany);
  EXPECT_EQ(limits.waiting_forwarded_calls, kWaitingForwardedCalls);
  EXPECT_LT(kWaitingCallsOfNode, kWaitingForwardedCalls);
  EXPECT_LT(kWaitingForwardedCalls, kWaitingCallsOfMany);
}

}  // namespace
}  // namespace muster
