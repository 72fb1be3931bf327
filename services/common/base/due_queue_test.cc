#include "services/common/base/due_queue.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

std::vector<std::string> PopAll(DueQueue<std::string>& queue, absl::Duration now) {
  std::vector<std::string> keys;
  while (auto key = queue.PopDue(now)) keys.push_back(*std::move(key));
  return keys;
}

TEST(DueQueueTest, EmptyQueueHasNoDeadline) {
  DueQueue<std::string> queue;
  EXPECT_EQ(queue.NextDue(), std::nullopt);
  EXPECT_EQ(queue.PopDue(absl::InfiniteDuration()), std::nullopt);
  EXPECT_FALSE(queue.Remove("a"));
}

TEST(DueQueueTest, PopDueReturnsKeysByDeadlineThenBySet) {
  DueQueue<std::string> queue;
  queue.Set("c", absl::Seconds(2));
  queue.Set("b", absl::Seconds(1));
  queue.Set("a", absl::Seconds(2));
  queue.Set("later", absl::Seconds(3));
  EXPECT_EQ(queue.NextDue(), absl::Seconds(1));
  EXPECT_EQ(PopAll(queue, absl::Seconds(2)), (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_TRUE(queue.contains("later"));
  EXPECT_FALSE(queue.contains("a"));
}

TEST(DueQueueTest, SetReplacesTheDeadlineOfAKnownKey) {
  DueQueue<std::string> queue;
  queue.Set("a", absl::Seconds(1));
  queue.Set("b", absl::Seconds(2));
  queue.Set("a", absl::Seconds(3));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(PopAll(queue, absl::Seconds(2)), (std::vector<std::string>{"b"}));
  queue.Set("a", absl::ZeroDuration());
  EXPECT_EQ(PopAll(queue, absl::ZeroDuration()), (std::vector<std::string>{"a"}));
}

TEST(DueQueueTest, RemovedKeysAreNotReturned) {
  DueQueue<std::string> queue;
  queue.Set("a", absl::Seconds(1));
  queue.Set("b", absl::Seconds(1));
  EXPECT_TRUE(queue.Remove("a"));
  EXPECT_FALSE(queue.Remove("a"));
  EXPECT_EQ(PopAll(queue, absl::Seconds(1)), (std::vector<std::string>{"b"}));
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace muster
