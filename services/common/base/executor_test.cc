#include "services/common/base/executor.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

// Keeps a thread of an executor busy until released.
class Plug {
 public:
  explicit Plug(Executor& executor) {
    auto held = std::make_shared<std::promise<void>>();
    std::future<void> holds = held->get_future();
    EXPECT_TRUE(executor.Post([held, released = release_.get_future().share()] {
      held->set_value();
      released.wait();
    }));
    holds.wait();
  }
  void Release() { release_.set_value(); }

 private:
  std::promise<void> release_;
};

TEST(ExecutorTest, RunsTasksOnSeveralThreads) {
  Executor executor({.threads = 3});
  std::latch all(3);  // passes only if three tasks run at the same time
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(executor.Post([&] { all.arrive_and_wait(); }));
  all.wait();
}

TEST(ExecutorTest, RefusesAndCountsWhatDoesNotFit) {
  Executor executor({.threads = 1, .max_queue = 2});
  Plug plug(executor);
  EXPECT_TRUE(executor.Post([] {}));
  EXPECT_TRUE(executor.Post([] {}));
  EXPECT_FALSE(executor.Post([] { ADD_FAILURE() << "a refused task ran"; }));
  EXPECT_EQ(executor.refused(), 1u);
  EXPECT_EQ(executor.queued(), 2u);
  plug.Release();
}

TEST(ExecutorTest, DrainRunsWhatWasAcceptedAndTakesNoMore) {
  Executor executor({.threads = 1});
  std::atomic<int> ran = 0;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(executor.Post([&] { ++ran; }));
  EXPECT_TRUE(executor.Drain(absl::InfiniteDuration()).ok());
  EXPECT_EQ(ran, 100);
  EXPECT_FALSE(executor.Post([] {}));
}

TEST(ExecutorTest, DrainGivesUpAtItsLimit) {
  Executor executor({.threads = 1});
  Plug plug(executor);
  const absl::Status status = executor.Drain(absl::Milliseconds(1));
  EXPECT_EQ(ReasonOf(status), "DRAIN_TIMEOUT");
  EXPECT_NE(status.message().find("1 tasks of worker"), absl::string_view::npos) << status;
  plug.Release();
}

TEST(ExecutorTest, DestructionRunsWhatWasAccepted) {
  std::atomic<int> ran = 0;
  {
    Executor executor({.threads = 2});
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(executor.Post([&] { ++ran; }));
  }
  EXPECT_EQ(ran, 100);
}

// A thread that is free of the tasks of one owner runs those of the others.
TEST(ExecutorTest, OwnerOccupiesNoMoreThanItsThreads) {
  Executor executor({.threads = 3, .threads_of_owner = 2});
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(executor.Post("many", [&] {
      most = std::max<int>(most, ++running);
      released.wait();
      --running;
    }));
  }
  std::promise<void> other;
  std::promise<void> nobody;
  EXPECT_TRUE(executor.Post("other", [&] { other.set_value(); }));
  EXPECT_TRUE(executor.Post([&] { nobody.set_value(); }));
  other.get_future().wait();
  nobody.get_future().wait();
  release.set_value();
  executor.AwaitIdle();
  EXPECT_LE(most, 2);
  EXPECT_EQ(executor.queued(), 0u);
}

TEST(ExecutorTest, OwnersTakeTurns) {
  std::vector<std::string> order;  // of one thread
  {
    Executor executor({.threads = 1});
    Plug plug(executor);
    for (int i = 0; i < 20; ++i)
      EXPECT_TRUE(executor.Post("many", [&] { order.push_back("many"); }));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(executor.Post("few", [&] { order.push_back("few"); }));
    EXPECT_TRUE(executor.Post([&] { order.push_back("none"); }));
    EXPECT_EQ(executor.queued(), 24u);
    plug.Release();
  }
  ASSERT_EQ(order.size(), 24u);
  EXPECT_EQ(std::vector<std::string>(order.begin(), order.begin() + 7),
            (std::vector<std::string>{"many", "few", "none", "many", "few", "many", "few"}));
}

TEST(ExecutorTest, OwnerTakesAtMostHalfOfTheQueue) {
  Executor executor({.threads = 1, .max_queue = 4});
  Plug plug(executor);
  EXPECT_TRUE(executor.Post("many", [] {}));
  EXPECT_TRUE(executor.Post("many", [] {}));
  EXPECT_FALSE(executor.Post("many", [] { ADD_FAILURE() << "a refused task ran"; }));
  EXPECT_EQ(executor.refused(), 1u);
  EXPECT_TRUE(executor.Post("other", [] {}));
  EXPECT_TRUE(executor.Post([] {}));
  EXPECT_FALSE(executor.Post("third", [] { ADD_FAILURE() << "a refused task ran"; }));
  plug.Release();
}

TEST(ExecutorTest, TasksOfManyOwnersAllRun) {
  std::atomic<int> ran = 0;
  {
    Executor executor({.threads = 4, .max_queue = 10'000, .threads_of_owner = 2});
    std::vector<std::thread> posters;
    for (int t = 0; t < 4; ++t) {
      posters.emplace_back([&, t] {
        for (int i = 0; i < 1000; ++i) {
          EXPECT_TRUE(executor.Post(std::to_string(i % (t + 1)), [&] { ++ran; }));
        }
      });
    }
    for (std::thread& poster : posters) poster.join();
  }
  EXPECT_EQ(ran, 4000);
}

TEST(StrandTest, KeepsOrderAndNeverRunsTwoAtOnce) {
  std::vector<int> order;  // unguarded on purpose: the strand guards it
  {
    Executor executor({.threads = 4});
    Strand strand(executor, 10'000);
    for (int i = 0; i < 5000; ++i) {
      EXPECT_TRUE(strand.Post([&order, i] { order.push_back(i); }));
    }
  }
  ASSERT_EQ(order.size(), 5000u);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(order[i], i);
}

TEST(StrandTest, ManyPostersAndStrandsShareAnExecutor) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 500;
  std::vector<int> counts(3, 0);
  {
    Executor executor({.threads = 2, .max_queue = 8});
    std::vector<Strand> strands;
    for (size_t s = 0; s < counts.size(); ++s) strands.emplace_back(executor, kThreads * kTasks);
    std::vector<std::thread> posters;
    for (int t = 0; t < kThreads; ++t) {
      posters.emplace_back([&] {
        for (int i = 0; i < kTasks; ++i) {
          for (size_t s = 0; s < strands.size(); ++s) {
            EXPECT_TRUE(strands[s].Post([&counts, s] { ++counts[s]; }));
          }
        }
      });
    }
    for (std::thread& poster : posters) poster.join();
  }
  EXPECT_EQ(counts, std::vector<int>(3, kThreads * kTasks));
}

TEST(StrandTest, RefusesWhatDoesNotFit) {
  Executor executor({.threads = 1, .max_queue = 1});
  Plug plug(executor);
  Strand strand(executor, 2);
  EXPECT_TRUE(strand.Post([] {}));
  EXPECT_TRUE(strand.Post([] {}));
  EXPECT_FALSE(strand.Post([] {}));
  EXPECT_EQ(strand.refused(), 1u);
  Strand other(executor, 2);
  EXPECT_FALSE(other.Post([] {}));  // the executor's own queue is full
  EXPECT_EQ(executor.refused(), 1u);
  plug.Release();
}

TEST(StrandTest, TasksOutliveTheStrand) {
  std::promise<void> ran;
  Executor executor({.threads = 1});
  Plug plug(executor);
  {
    Strand strand(executor, 2);
    EXPECT_TRUE(strand.Post([&] { ran.set_value(); }));
  }
  plug.Release();
  ran.get_future().get();
}

}  // namespace
}  // namespace muster
