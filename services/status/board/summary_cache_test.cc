#include "services/status/board/summary_cache.h"

#include "gtest/gtest.h"
#include "services/status/board/watch_hub.h"

namespace muster {
namespace {

class SummaryCacheTest : public ::testing::Test {
 protected:
  void Get(absl::Duration now) {
    EXPECT_NE(cache_.Get(now,
                         [this] {
                           ++made_;
                           return v1::RunStatus();
                         }),
              nullptr);
  }

  SummaryCache cache_;
  int made_ = 0;
};

TEST_F(SummaryCacheTest, SummaryIsMadeOnceWithinARound) {
  Get(absl::Seconds(1));
  Get(absl::Seconds(1) + kWatchPace - absl::Milliseconds(1));
  EXPECT_EQ(made_, 1);
  Get(absl::Seconds(1) + kWatchPace);
  EXPECT_EQ(made_, 2);
}

TEST_F(SummaryCacheTest, ChangeOfTheRunMakesTheSummaryObsolete) {
  Get(absl::Seconds(1));
  const uint64_t before = cache_.version();
  cache_.Invalidate();
  EXPECT_GT(cache_.version(), before);
  Get(absl::Seconds(1));
  EXPECT_EQ(made_, 2);
}

}  // namespace
}  // namespace muster
