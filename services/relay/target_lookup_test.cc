#include "services/relay/target_lookup.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"
#include "services/common/errors/joining.h"

namespace muster {
namespace {

TEST(TargetLookupTest, NodeThatMayAttachIsAccepted) {
  EXPECT_TRUE(JudgeTarget("n1", absl::OkStatus(), {}).ok());
}

TEST(TargetLookupTest, UnusableTargetIsRefusedWithTheCause) {
  const auto message = [](const absl::Status& status, bool revoked, bool is_relay) {
    v1::EnrolledNode found;
    found.set_revoked(revoked);
    found.set_is_relay(is_relay);
    const absl::Status target = JudgeTarget("n1", status, found);
    EXPECT_EQ(ReasonOf(target), "TARGET_UNKNOWN");
    return std::string(target.message());
  };
  EXPECT_EQ(message(errors::NodeNotEnrolled("n1"), false, false),
            "node \"n1\" has not joined the fleet, or was removed");
  EXPECT_EQ(message(absl::OkStatus(), true, false), "node \"n1\" was revoked");
  EXPECT_EQ(message(absl::OkStatus(), false, true), "\"n1\" is a relay, not a node");
  EXPECT_EQ(message(absl::OkStatus(), true, true), "\"n1\" is a relay, not a node");
}

TEST(TargetLookupTest, ErrorOfTheCallIsReturned) {
  EXPECT_TRUE(absl::IsUnavailable(JudgeTarget("n1", absl::UnavailableError("down"), {})));
}

}  // namespace
}  // namespace muster
