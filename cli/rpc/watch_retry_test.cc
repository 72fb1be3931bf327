#include "cli/rpc/watch_retry.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

TEST(WatchRetryTest, LostStreamIsOpenedAgainForTwoMinutesWithoutAResponse) {
  for (const absl::Status& lost : {absl::UnavailableError("away"), absl::CancelledError("slow")}) {
    EXPECT_TRUE(IsWatchRetried(lost, absl::ZeroDuration()));
    EXPECT_TRUE(IsWatchRetried(lost, absl::Seconds(119)));
    EXPECT_FALSE(IsWatchRetried(lost, absl::Seconds(120)));
  }
}

TEST(WatchRetryTest, RefusedStreamIsNotOpenedAgain) {
  EXPECT_FALSE(IsWatchRetried(absl::NotFoundError("no job"), absl::ZeroDuration()));
  EXPECT_FALSE(IsWatchRetried(absl::PermissionDeniedError("no"), absl::ZeroDuration()));
}

}  // namespace
}  // namespace muster::cli
