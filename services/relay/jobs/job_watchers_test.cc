#include "services/relay/jobs/job_watchers.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(JobWatchersTest, WakeCallsTheWatchersOfTheJob) {
  JobWatchers watchers;
  int first = 0;
  int second = 0;
  const uint64_t id = watchers.Add("j1", [&] { ++first; });
  watchers.Add("j1", [&] { ++second; });
  watchers.Wake("j1");
  watchers.Wake("j2");
  watchers.Remove("j1", id);
  watchers.Wake("j1");
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
  EXPECT_TRUE(watchers.Any("j1"));
  EXPECT_FALSE(watchers.Any("j2"));
}

TEST(JobWatchersTest, WatcherMayRemoveItselfWhenItIsCalled) {
  JobWatchers watchers;
  uint64_t id = 0;
  id = watchers.Add("j1", [&] { watchers.Remove("j1", id); });
  watchers.Wake("j1");
  EXPECT_FALSE(watchers.Any("j1"));
}

}  // namespace
}  // namespace muster
