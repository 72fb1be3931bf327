#include "services/relay/jobs/pending_acks.h"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

v1::JobRecord Record(const std::string& node, size_t bytes = 1) {
  v1::JobRecord record;
  record.set_job("j1");
  record.set_node(node);
  record.mutable_output()->set_data(std::string(bytes, 'x'));
  return record;
}

TEST(PendingAcksTest, AcksOfANodeAreJoinedUntilTheyAreDue) {
  PendingAcks acks;
  acks.Add(Record("n1"), 1);
  EXPECT_EQ(acks.DequeueDue(absl::Seconds(10)).reached_size(), 0);
  acks.Add(Record("n1"), 2);
  acks.Add(Record("n2"), 7);
  EXPECT_EQ(acks.DequeueDue(absl::Seconds(11)).reached_size(), 0);
  const v1::RecordsAck due = acks.DequeueDue(absl::Seconds(12));
  ASSERT_EQ(due.reached_size(), 2);
  EXPECT_EQ(due.reached(0).node(), "n1");
  EXPECT_EQ(due.reached(0).sequence(), 2);
  EXPECT_EQ(due.reached(1).sequence(), 7);
  EXPECT_EQ(acks.DequeueDue(absl::Seconds(20)).reached_size(), 0);
}

TEST(PendingAcksTest, NodeWithManyRecordsOrMuchOutputIsAckedAtOnce) {
  PendingAcks acks;
  for (int64_t i = 1; i <= 63; ++i) acks.Add(Record("n1"), i);
  EXPECT_EQ(acks.DequeueDue(absl::ZeroDuration()).reached_size(), 0);
  acks.Add(Record("n1"), 64);
  acks.Add(Record("n2", 16 * 1024), 1);
  EXPECT_EQ(acks.DequeueDue(absl::ZeroDuration()).reached_size(), 2);
}

TEST(PendingAcksTest, NumberOfPendingAcksIsBounded) {
  PendingAcks acks;
  for (int i = 0; i <= 10'000; ++i) acks.Add(Record("n" + std::to_string(i)), 1);
  EXPECT_EQ(acks.DequeueDue(absl::ZeroDuration()).reached_size(), 10'001);
  EXPECT_EQ(acks.size(), 0U);
}

}  // namespace
}  // namespace muster
