#include "services/relay/files/share_errors.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"

namespace muster {
namespace {

v1::Share Reported(int state, const std::string& relay) {
  v1::Share share;
  share.set_state(static_cast<v1::ShareState>(state));
  share.set_relay(relay);
  return share;
}

TEST(ShareErrorsTest, ReportWithAnUnknownStateOrRelayIsRefused) {
  EXPECT_TRUE(CheckReported(Reported(v1::SHARE_STATE_DELIVERED, "r1")).ok());
  EXPECT_TRUE(CheckReported(Reported(v1::SHARE_STATE_REMOVED, "")).ok());
  EXPECT_EQ(ReasonOf(CheckReported(Reported(0, "r1"))), "INVALID_SHARE");
  EXPECT_EQ(ReasonOf(CheckReported(Reported(99, "r1"))), "INVALID_SHARE");
  EXPECT_EQ(ReasonOf(CheckReported(Reported(v1::SHARE_STATE_DELIVERED, "r\n1"))), "INVALID_NAME");
  EXPECT_EQ(ReasonOf(CheckReported(Reported(v1::SHARE_STATE_DELIVERED, std::string(254, 'r')))),
            "INVALID_NAME");
}

}  // namespace
}  // namespace muster
