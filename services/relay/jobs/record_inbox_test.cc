#include "services/relay/jobs/record_inbox.h"

#include <gtest/gtest.h>

#include <stop_token>
#include <thread>

namespace muster {
namespace {

TEST(RecordInboxTest, WaitReturnsAllWorkAtOnce) {
  RecordInbox inbox;
  const std::stop_source stop;
  std::thread other([&] {
    inbox.Add({v1::JobRecords(), [] {}});
    inbox.AddRelay("r1", true);
    inbox.SetReachable();
  });
  other.join();
  RecordInbox::Work work = inbox.Wait(stop.get_token(), absl::InfiniteDuration());
  EXPECT_EQ(work.batches.size(), 1U);
  EXPECT_EQ(work.relays.size(), 1U);
  EXPECT_TRUE(work.reachable);
  inbox.Wake();
  work = inbox.Wait(stop.get_token(), absl::InfiniteDuration());
  EXPECT_TRUE(work.batches.empty());
  EXPECT_FALSE(work.reachable);
}

TEST(RecordInboxTest, StopEndsAWait) {
  RecordInbox inbox;
  std::stop_source stop;
  std::thread other([&] { stop.request_stop(); });
  EXPECT_TRUE(inbox.Wait(stop.get_token(), absl::Hours(1)).batches.empty());
  other.join();
}

}  // namespace
}  // namespace muster
