#include "services/relay/jobs/record_inbox.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

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

TEST(RecordInboxTest, RelayThatChangesManyTimesHasOneEntryOrNone) {
  RecordInbox inbox;
  for (int i = 0; i < 999; ++i) inbox.AddRelay("r1", i % 2 == 0);
  inbox.AddRelay("r2", false);
  EXPECT_EQ(inbox.Dequeue().relays, (std::map<std::string, bool>{{"r1", true}, {"r2", false}}));
  for (int i = 0; i < 1'000; ++i) inbox.AddRelay("r1", i % 2 == 0);
  EXPECT_TRUE(inbox.Dequeue().relays.empty());
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
