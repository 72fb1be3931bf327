#include "services/relay/jobs/record_inbox.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(RecordInboxTest, DequeueReturnsAllWorkOnce) {
  RecordInbox inbox;
  int wakes = 0;
  inbox.Listen([&] { ++wakes; });
  inbox.Add({v1::JobRecords(), [] {}});
  inbox.AddRelay("r1", true);
  inbox.SetReachable();
  inbox.Wake();
  EXPECT_EQ(wakes, 4);
  RecordInbox::Work work = inbox.Dequeue();
  EXPECT_EQ(work.batches.size(), 1U);
  EXPECT_EQ(work.relays.size(), 1U);
  EXPECT_TRUE(work.reachable);
  work = inbox.Dequeue();
  EXPECT_TRUE(work.batches.empty());
  EXPECT_FALSE(work.reachable);
}

TEST(RecordInboxTest, ListenerThatWasRemovedIsNotCalled) {
  RecordInbox inbox;
  int wakes = 0;
  inbox.Listen([&] { ++wakes; });
  inbox.Listen(nullptr);
  inbox.Wake();
  EXPECT_EQ(wakes, 0);
}

}  // namespace
}  // namespace muster
