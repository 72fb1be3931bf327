#include "services/common/rpc/task_answer.h"

#include <memory>
#include <optional>

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

}  // namespace
}  // namespace muster
