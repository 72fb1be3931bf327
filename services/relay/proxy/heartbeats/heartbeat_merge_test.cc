#include "services/relay/proxy/heartbeats/heartbeat_merge.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

v1::StreamHeartbeatsRequest Heartbeat(const std::string& plugin) {
  v1::StreamHeartbeatsRequest heartbeat;
  v1::Activity& activity = *heartbeat.add_activities();
  activity.mutable_key()->set_run("r");
  activity.mutable_key()->set_plugin(plugin);
  return heartbeat;
}

v1::StreamHeartbeatsRequest Appended(int completed, const std::string& failing) {
  v1::StreamHeartbeatsRequest heartbeat = Heartbeat("p");
  v1::ReportProgressRequest& progress = *heartbeat.mutable_activities(0)->mutable_progress();
  progress.set_append_totals(true);
  progress.set_append_completed(completed);
  progress.add_append_failing(failing);
  return heartbeat;
}

v1::StreamHeartbeatsRequest Plain(int total, int completed) {
  v1::StreamHeartbeatsRequest heartbeat = Heartbeat("p");
  v1::ReportProgressRequest& progress = *heartbeat.mutable_activities(0)->mutable_progress();
  progress.set_total(total);
  progress.set_completed(completed);
  return heartbeat;
}

TEST(HeartbeatMergeTest, LaterActivityReplacesTheEarlierOneOfItsPair) {
  v1::StreamHeartbeatsRequest merged = Plain(9, 1);
  merged.mutable_activities(0)->set_phase(v1::PHASE_WORKING);
  merged.mutable_activities(0)->mutable_fault()->set_message("no route");
  v1::StreamHeartbeatsRequest later = Heartbeat("p");
  later.set_sequence(7);
  later.mutable_activities(0)->set_message("nearly done");
  MergeHeartbeat(later, &merged);
  MergeHeartbeat(Heartbeat("q"), &merged);
  ASSERT_EQ(merged.activities_size(), 2);
  EXPECT_EQ(merged.activities(0).message(), "nearly done");
  EXPECT_EQ(merged.activities(0).phase(), v1::PHASE_WORKING) << "unchanged";
  EXPECT_EQ(merged.activities(0).progress().total(), 9) << "unchanged";
  EXPECT_FALSE(merged.activities(0).has_fault());
}

// The status service reads the last activity of each pair only.
TEST(HeartbeatMergeTest, AppendedProgressOfAPairIsAddedUp) {
  v1::StreamHeartbeatsRequest merged = Appended(1, "a");
  MergeHeartbeat(Appended(2, "b"), &merged);
  ASSERT_EQ(merged.activities_size(), 1);
  const v1::ReportProgressRequest& progress = merged.activities(0).progress();
  EXPECT_EQ(progress.append_completed(), 3);
  EXPECT_TRUE(progress.append_totals());
  ASSERT_EQ(progress.append_failing_size(), 2);
  EXPECT_EQ(progress.append_failing(1), "b");
}

TEST(HeartbeatMergeTest, AppendedProgressIsAddedToAPlainReport) {
  v1::StreamHeartbeatsRequest merged = Plain(9, 1);
  MergeHeartbeat(Appended(2, "b"), &merged);
  ASSERT_EQ(merged.activities_size(), 1);
  EXPECT_EQ(merged.activities(0).progress().total(), 12);
  EXPECT_EQ(merged.activities(0).progress().completed(), 3);
  EXPECT_EQ(merged.activities(0).progress().failures(0), "b");
  EXPECT_EQ(merged.activities(0).progress().append_completed(), 0);
  MergeHeartbeat(Plain(5, 5), &merged);
  EXPECT_EQ(merged.activities(0).progress().total(), 5) << "a plain report replaces it";
}

TEST(HeartbeatMergeTest, FirstHeartbeatHasAppendedProgressOnce) {
  v1::StreamHeartbeatsRequest all = Appended(2, "b");
  RemoveAppendedProgress(&all);
  EXPECT_FALSE(all.activities(0).has_progress());
  AddAppendedProgress(Appended(2, "b"), &all);
  EXPECT_EQ(all.activities(0).progress().append_completed(), 2);
  // The plain report was merged with the same appended progress.
  v1::StreamHeartbeatsRequest summed = Plain(9, 3);
  AddAppendedProgress(Appended(2, "b"), &summed);
  EXPECT_EQ(summed.activities(0).progress().completed(), 3);
  EXPECT_EQ(AppendedProgress(summed).activities_size(), 0);
}

TEST(HeartbeatMergeTest, OldestActivitiesBeyondTheirNumberAreDropped) {
  v1::StreamHeartbeatsRequest merged;
  for (int i = 0; i < 1500; ++i) MergeHeartbeat(Heartbeat(absl::StrCat("p", i)), &merged);
  ASSERT_EQ(merged.activities_size(), 1000);
  EXPECT_EQ(merged.activities(0).key().plugin(), "p500");
}

TEST(HeartbeatMergeTest, OldestActivitiesBeyondTheirMemoryAreDropped) {
  v1::StreamHeartbeatsRequest merged;
  for (int i = 0; i < 100; ++i) {
    v1::StreamHeartbeatsRequest heartbeat = Heartbeat(absl::StrCat("p", i));
    for (int k = 0; k < 100; ++k) {
      heartbeat.mutable_activities(0)->mutable_progress()->add_failures(std::string(1024, 'x'));
    }
    MergeHeartbeat(heartbeat, &merged);
  }
  EXPECT_EQ(merged.activities(merged.activities_size() - 1).key().plugin(), "p99");
  EXPECT_LE(merged.SpaceUsedLong(), size_t{600} << 10);
}

// Each empty name takes two bytes in the message, and far more memory.
TEST(HeartbeatMergeTest, EmptyNamesAreCountedWithTheirMemory) {
  v1::StreamHeartbeatsRequest merged;
  v1::StreamHeartbeatsRequest heartbeat = Heartbeat("p");
  v1::ReportProgressRequest& progress = *heartbeat.mutable_activities(0)->mutable_progress();
  for (int i = 0; i < 100'000; ++i) progress.add_append_failing("");
  MergeHeartbeat(heartbeat, &merged);
  EXPECT_LE(merged.SpaceUsedLong(), size_t{600} << 10);
}

// Fields that are only emptied keep their memory.
TEST(HeartbeatMergeTest, ReplacedTextsReleaseTheirMemory) {
  v1::StreamHeartbeatsRequest merged;
  for (int i = 0; i < 500; ++i) {
    v1::StreamHeartbeatsRequest heartbeat = Heartbeat(absl::StrCat("p", i));
    heartbeat.mutable_activities(0)->set_message(std::string(4096, 'x'));
    MergeHeartbeat(heartbeat, &merged);
    MergeHeartbeat(Heartbeat(absl::StrCat("p", i)), &merged);
  }
  EXPECT_EQ(merged.activities_size(), 500);
  EXPECT_LE(merged.SpaceUsedLong(), size_t{600} << 10);
}

}  // namespace
}  // namespace muster
