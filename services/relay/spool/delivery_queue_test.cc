#include "services/relay/spool/delivery_queue.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

class DeliveryQueueTest : public ::testing::Test {
 protected:
  void Add(const std::string& node, const std::string& id) {
    queue_.Enqueue(node, id, clock_.Now());
  }
  std::string Next() { return queue_.Dequeue().value_or(""); }

  FakeClock clock_;
  DeliveryQueue queue_{clock_};
};

TEST_F(DeliveryQueueTest, ResultsOfANodeLeaveInOrderAndOneAtATime) {
  Add("n1", "a");
  Add("n1", "b");
  EXPECT_EQ(Next(), "a");
  EXPECT_EQ(Next(), "");
  queue_.Finish("n1");
  EXPECT_EQ(Next(), "b");
  queue_.Finish("n1");
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(queue_.size(), 0);
}

TEST_F(DeliveryQueueTest, NodesTakeTurns) {
  Add("n1", "a1");
  Add("n1", "a2");
  Add("n2", "b1");
  EXPECT_EQ(Next(), "a1");
  queue_.Finish("n1");
  EXPECT_EQ(Next(), "b1");
  queue_.Finish("n2");
  EXPECT_EQ(Next(), "a2");
}

TEST_F(DeliveryQueueTest, RequeuedResultDelaysItsNodeAlone) {
  Add("n1", "a");
  Add("n2", "b");
  EXPECT_EQ(Next(), "a");
  queue_.Requeue("n1", absl::Seconds(10));
  EXPECT_EQ(Next(), "b");
  queue_.Finish("n2");
  clock_.Advance(absl::Seconds(10) - absl::Nanoseconds(1));
  EXPECT_EQ(Next(), "");
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(Next(), "a");
}

// Its run may be full, or a later attempt is being delivered.
TEST_F(DeliveryQueueTest, RequeuedResultGoesBehindTheOthersOfItsNode) {
  Add("n1", "a");
  clock_.Advance(absl::Seconds(1));
  Add("n1", "b");
  EXPECT_EQ(Next(), "a");
  queue_.Requeue("n1", std::nullopt);
  EXPECT_EQ(queue_.OldestWait(), absl::Seconds(1));
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Next(), "b");
  queue_.Finish("n1");
  EXPECT_EQ(Next(), "a");
}

TEST_F(DeliveryQueueTest, WaitsOfFailedDeliveriesGrowUpToALimit) {
  constexpr int kNodes = 100;
  for (int i = 0; i < kNodes; ++i) Add(absl::StrCat("n", i), "a");
  const auto fail_due = [this] {
    int due = 0;
    for (; queue_.Dequeue(); ++due) {
    }
    for (int i = 0; i < kNodes; ++i) queue_.Requeue(absl::StrCat("n", i), std::nullopt);
    return due;
  };
  EXPECT_EQ(fail_due(), kNodes);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(fail_due(), kNodes);
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Seconds(30));
    EXPECT_EQ(fail_due(), kNodes);
  }
  clock_.Advance(absl::Seconds(5));
  EXPECT_LT(fail_due(), kNodes);
  queue_.ResetBackoff();
  EXPECT_EQ(fail_due(), kNodes);
}

TEST_F(DeliveryQueueTest, WaitThatAServerAsksForIsBounded) {
  Add("n1", "a");
  EXPECT_EQ(Next(), "a");
  queue_.Requeue("n1", absl::Hours(24));
  clock_.Advance(absl::Minutes(10) - absl::Nanoseconds(1));
  EXPECT_EQ(Next(), "");
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Next(), "a");
}

TEST_F(DeliveryQueueTest, FinishWithoutADeliveryChangesNothing) {
  queue_.Finish("n1");
  Add("n1", "a");
  queue_.Finish("n1");
  EXPECT_EQ(queue_.size(), 1);
}

TEST_F(DeliveryQueueTest, OldestWaitIsOfTheOldestResult) {
  EXPECT_EQ(queue_.OldestWait(), absl::ZeroDuration());
  Add("n1", "a");
  clock_.Advance(absl::Seconds(5));
  Add("n2", "b");
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(queue_.OldestWait(), absl::Seconds(7));
  EXPECT_EQ(Next(), "a");
  queue_.Finish("n1");
  EXPECT_EQ(queue_.OldestWait(), absl::Seconds(2));
}

}  // namespace
}  // namespace muster
