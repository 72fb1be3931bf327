#include "services/common/upload/fair_strand.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

namespace muster {
namespace {

class FairStrandTest : public ::testing::Test {
 protected:
  // Occupies the only thread until Release.
  void Hold() {
    ASSERT_TRUE(executor_.Post([held = release_.get_future().share()] { held.wait(); }));
  }
  void Release() {
    release_.set_value();
    executor_.AwaitIdle();
  }

  Executor::Task Note(const std::string& what) {
    return [this, what] { order_.push_back(what); };
  }

  // The order of tasks, which one thread runs.
  std::vector<std::string> order_;
  std::promise<void> release_;
  Executor executor_{{"disk", 1, 100}};
};

TEST_F(FairStrandTest, OwnerWithManyUploadsDoesNotDelayAnother) {
  Hold();
  std::vector<FairStrand> strands;
  for (int i = 0; i < 10; ++i) {
    strands.emplace_back(executor_, "many", 8);
    ASSERT_TRUE(strands.back().Post(Note("many")));
    ASSERT_TRUE(strands.back().Post(Note("many")));
  }
  FairStrand other(executor_, "other", 8);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(other.Post(Note("other")));
  Release();
  ASSERT_EQ(order_.size(), 23u);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(order_[i], i % 2 == 0 ? "many" : "other") << i;
}

TEST_F(FairStrandTest, TasksOfOneStrandRunInOrder) {
  Hold();
  FairStrand strand(executor_, "one", 8);
  FairStrand other(executor_, "other", 8);
  for (const char* const what : {"1", "2", "3"}) {
    ASSERT_TRUE(strand.Post(Note(what)));
    ASSERT_TRUE(other.Post([] {}));
  }
  Release();
  EXPECT_EQ(order_, (std::vector<std::string>{"1", "2", "3"}));
}

TEST_F(FairStrandTest, FullQueueRejectsATask) {
  Hold();
  FairStrand strand(executor_, "one", 2);
  EXPECT_TRUE(strand.Post(Note("1")));
  EXPECT_TRUE(strand.Post(Note("2")));
  EXPECT_FALSE(strand.Post(Note("3")));
  Release();
  EXPECT_EQ(order_.size(), 2u);
}

TEST_F(FairStrandTest, DrainingExecutorRejectsATask) {
  EXPECT_TRUE(executor_.Drain(absl::InfiniteDuration()).ok());
  FairStrand strand(executor_, "one", 8);
  EXPECT_FALSE(strand.Post([] {}));
}

TEST_F(FairStrandTest, TasksRunAfterTheirStrandIsDestroyed) {
  Hold();
  {
    FairStrand strand(executor_, "one", 8);
    ASSERT_TRUE(strand.Post(Note("1")));
    ASSERT_TRUE(strand.Post(Note("2")));
  }
  Release();
  EXPECT_EQ(order_.size(), 2u);
}

}  // namespace
}  // namespace muster
