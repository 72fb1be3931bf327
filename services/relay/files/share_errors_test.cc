#include "services/relay/files/share_errors.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(ShareErrorsTest, UnknownStateOfAReportIsRefused) {
  EXPECT_TRUE(CheckReported(v1::SHARE_STATE_DELIVERED).ok());
  EXPECT_TRUE(CheckReported(v1::SHARE_STATE_REMOVED).ok());
  EXPECT_EQ(ReasonOf(CheckReported(v1::SHARE_STATE_UNSPECIFIED)), "INVALID_SHARE");
  EXPECT_EQ(ReasonOf(CheckReported(static_cast<v1::ShareState>(99))), "INVALID_SHARE");
}

}  // namespace
}  // namespace muster
