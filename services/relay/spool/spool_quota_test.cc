#include "services/relay/spool/spool_quota.h"

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kOverhead = 8 * 1024;

class SpoolQuotaTest : public ::testing::Test {
 protected:
  SpoolQuota quota_{64 * kMiB, 8};
};

TEST_F(SpoolQuotaTest, NodeMayUseAQuarterOfTheBytes) {
  EXPECT_EQ(ReasonOf(quota_.Add("a", "n1", 16 * kMiB)), "SPOOL_FULL");
  EXPECT_EQ(quota_.usage().entries, 0);
  EXPECT_TRUE(quota_.Add("a", "n1", 16 * kMiB - kOverhead).ok());
  EXPECT_EQ(ReasonOf(quota_.Add("b", "n1", 0)), "SPOOL_FULL");
  EXPECT_TRUE(quota_.Add("b", "n2", 0).ok());
}

TEST_F(SpoolQuotaTest, NodeMayUseAQuarterOfTheEntries) {
  EXPECT_TRUE(quota_.Add("a", "n1", 0).ok());
  EXPECT_TRUE(quota_.Add("b", "n1", 0).ok());
  EXPECT_EQ(ReasonOf(quota_.Add("c", "n1", 0)), "SPOOL_FULL");
  quota_.Release("a");
  EXPECT_TRUE(quota_.Add("c", "n1", 0).ok());
}

TEST_F(SpoolQuotaTest, AllNodesTogetherStayWithinTheLimits) {
  for (const char* node : {"n1", "n2", "n3"}) {
    ASSERT_TRUE(quota_.Add(node, node, 16 * kMiB - kOverhead).ok());
  }
  quota_.Restore("n4", "n4", 10 * kMiB);
  EXPECT_EQ(ReasonOf(quota_.Add("n5", "n5", 7 * kMiB)), "SPOOL_FULL");
  EXPECT_TRUE(quota_.Add("n5", "n5", 5 * kMiB).ok());
}

TEST_F(SpoolQuotaTest, GrowsInStepsUpToTheLimit) {
  ASSERT_TRUE(quota_.Add("a", "n1", 0).ok());
  ASSERT_TRUE(quota_.Grow("a", 1).ok());
  EXPECT_EQ(quota_.usage().bytes, 4 * kMiB + kOverhead);
  ASSERT_TRUE(quota_.Grow("a", 4 * kMiB).ok());
  EXPECT_EQ(quota_.usage().bytes, 4 * kMiB + kOverhead);
  EXPECT_EQ(ReasonOf(quota_.Grow("a", 16 * kMiB)), "SPOOL_FULL");
  EXPECT_EQ(quota_.usage().bytes, 4 * kMiB + kOverhead);
  EXPECT_EQ(ReasonOf(quota_.Grow("b", 1)), "UPLOAD_NOT_FOUND");
}

TEST_F(SpoolQuotaTest, CompleteEntryIsChargedForItsSize) {
  ASSERT_TRUE(quota_.Add("a", "n1", 0).ok());
  ASSERT_TRUE(quota_.Grow("a", 100).ok());
  quota_.Set("a", 100);
  EXPECT_EQ(quota_.usage().bytes, 100 + kOverhead);
  quota_.Release("a");
  quota_.Release("a");
  EXPECT_EQ(quota_.usage().bytes, 0);
}

}  // namespace
}  // namespace muster
