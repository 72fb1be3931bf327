#include "services/relay/relay_identity.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

TEST(RelayIdentityTest, FolderOfARelayThatHasNotJoinedIsRefusedWithTheNextStep) {
  FakeClock clock{absl::Now()};
  Executor executor{{"test", 1}};
  const absl::Status status =
      RelayIdentity::Open(::testing::TempDir() + "/no_relay", clock, executor).status();
  EXPECT_EQ(ReasonOf(status), "NOT_JOINED") << status;
  EXPECT_NE(NextStepOf(status).find("muster relay join"), std::string::npos);
}

}  // namespace
}  // namespace muster
