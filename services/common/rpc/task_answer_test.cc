#include "services/common/rpc/task_answer.h"

#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/executor.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

TEST(TaskAnswerTest, TaskTakesTheAnswerOnceAndNoneAfterItsEnd) {
  FakeClock clock;
  Executor executor({.name = "task", .threads = 1});
  const auto answer = std::make_shared<TaskAnswer<int>>();
  int runs = 0;
  std::optional<int> taken;
  ScheduledTask task(clock, executor, [&] {
    ++runs;
    taken = answer->Take();
  });
  answer->SetTask(&task);
  EXPECT_EQ(answer->Take(), std::nullopt);
  answer->Set(7);
  executor.AwaitIdle();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(taken, 7);
  EXPECT_EQ(answer->Take(), std::nullopt);
  answer->SetTask(nullptr);
  answer->Set(8);
  executor.AwaitIdle();
  EXPECT_EQ(runs, 1);
}

TEST(AnswerBatchTest, TaskTakesAllAnswersAfterTheLastOne) {
  FakeClock clock;
  Executor executor({.name = "task", .threads = 1});
  const auto answer = std::make_shared<AnswerBatch<int>::Answer>();
  std::vector<int> taken;
  int runs = 0;
  ScheduledTask task(clock, executor, [&] {
    ++runs;
    taken = answer->Take().value_or(std::vector<int>());
  });
  answer->SetTask(&task);
  AnswerBatch<int> batch(3, answer);
  batch.Add(2);
  batch.Add(1);
  executor.AwaitIdle();
  EXPECT_EQ(runs, 0);
  batch.Add(3);
  executor.AwaitIdle();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(taken, (std::vector<int>{2, 1, 3}));
  answer->SetTask(nullptr);
}

}  // namespace
}  // namespace muster
