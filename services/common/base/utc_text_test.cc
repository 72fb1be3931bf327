#include "services/common/base/utc_text.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(UtcTextTest, TimeIsToTheSecond) {
  EXPECT_EQ(UtcText(absl::FromUnixMillis(1'767'323'045'999)), "2026-01-02 03:04:05 UTC");
}

}  // namespace
}  // namespace muster
