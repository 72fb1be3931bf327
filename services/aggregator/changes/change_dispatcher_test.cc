#include "services/aggregator/changes/change_dispatcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "services/common/errors/store.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

class ChangeDispatcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(harness_.Open().ok());
    dispatcher_.emplace(harness_.feed(), executor_);
    Plan(0xa);
  }

  void Plan(int n) {
    const std::string run = std::string(15, '0') + "0123456789abcdef"[n];
    CreateRun command = MakeRun(run, {{"facts", "n1"}});
    ASSERT_TRUE(harness_.state().ApplyAndWait(std::move(command)).ok());
    // The store calls its subscribers after the callback: the callback of another command runs
    // later.
    ASSERT_TRUE(harness_.state().ApplyAndWait(AbandonUpload{}).ok());
  }

  void Start() {
    dispatcher_->AddObserver([this](const ChangeRecord& change) {
      if (change.kind == ChangeKind::kRunCreated) seen_ += change.run.back();
    });
    ASSERT_TRUE(dispatcher_->Start().ok());
  }

  // Plans a run while the executor refuses tasks.
  void PlanWhileFull(int n) {
    std::promise<void> go_on;
    std::shared_future<void> gate = go_on.get_future().share();
    std::promise<void> busy;
    ASSERT_TRUE(executor_.Post([&busy, gate] {
      busy.set_value();
      gate.wait();
    }));
    busy.get_future().wait();
    while (executor_.Post([] {})) {
    }
    Plan(n);
    go_on.set_value();
    executor_.AwaitIdle();
  }

  // Begins with a feed that answers the first reads with CURSOR_COMPACTED.
  void StartWithGap(int reads, std::function<absl::Status()> on_gap) {
    feed_.compacted = reads;
    dispatcher_.emplace(feed_, executor_);
    dispatcher_->AddObserver([this](const ChangeRecord& change) {
      if (change.kind == ChangeKind::kRunCreated) seen_ += change.run.back();
    });
    dispatcher_->OnGap(std::move(on_gap));
    ASSERT_TRUE(dispatcher_->Start().ok());
  }

  // Waits for the queued work of the executor.
  void Settle() {
    std::promise<void> done;
    ASSERT_TRUE(executor_.Post([&] { done.set_value(); }));
    done.get_future().wait();
  }

  class FeedWithGap : public ChangeFeed {
   public:
    explicit FeedWithGap(SqliteHarness& harness) : harness_(harness) {}
    absl::StatusOr<std::vector<ChangeRecord>> Read(int64_t after, int limit) override {
      if (compacted-- > 0) return errors::CursorCompacted(after + 2, after);
      if (failing > 0) {
        --failing;
        return absl::InternalError("busy");
      }
      return harness_.feed().Read(after, limit);
    }
    absl::StatusOr<std::string> Identity() override { return harness_.feed().Identity(); }
    absl::StatusOr<int64_t> Last() override { return harness_.feed().Last(); }
    std::unique_ptr<Subscription> Subscribe(std::function<void(int64_t)> on_change) override {
      return harness_.feed().Subscribe(std::move(on_change));
    }
    std::atomic<int> compacted = 0;
    std::atomic<int> failing = 0;  // reads

   private:
    SqliteHarness& harness_;
  };

  SqliteHarness harness_;
  FeedWithGap feed_{harness_};
  Executor executor_{{"work", 1, 2}};
  std::string seen_;  // written by the executor; read after Settle
  std::optional<ChangeDispatcher> dispatcher_;
};

TEST_F(ChangeDispatcherTest, ChangesAfterTheStartAreDispatchedInOrder) {
  Start();
  for (const int n : {0xb, 0xc, 0xd}) Plan(n);
  Settle();
  EXPECT_EQ(seen_, "bcd");
}

TEST_F(ChangeDispatcherTest, WakersAreCalledUntilTheirHandleIsDestroyed) {
  Start();
  Settle();
  std::atomic<int> first = 0;
  std::atomic<int> second = 0;
  ChangeDispatcher::Handle handle = dispatcher_->Watch([&] { ++first; });
  const ChangeDispatcher::Handle stays = dispatcher_->Watch([&] { ++second; });
  Plan(0xb);
  Settle();
  EXPECT_GE(first, 1);
  EXPECT_GE(second, 1);
  const int before = first;
  const int stayed = second;
  handle.reset();
  Plan(0xc);
  Settle();
  dispatcher_->WakeAll();
  EXPECT_EQ(first, before);
  EXPECT_GE(second, stayed + 2);
}

TEST_F(ChangeDispatcherTest, NoChangeIsDispatchedAfterStop) {
  Start();
  dispatcher_->Stop();
  Plan(0xb);
  Settle();
  EXPECT_EQ(seen_, "");
}

TEST_F(ChangeDispatcherTest, ChangeOfAFullExecutorIsDispatchedWithTheNext) {
  Start();
  Settle();
  PlanWhileFull(0xb);
  Plan(0xc);
  Settle();
  EXPECT_EQ(seen_, "bc");
}

TEST_F(ChangeDispatcherTest, ChangeOfAFullExecutorIsDispatchedWithoutAFurtherOne) {
  Start();
  Settle();
  PlanWhileFull(0xb);
  Settle();
  EXPECT_EQ(seen_, "");
  dispatcher_->RetryFailedRead();
  Settle();
  EXPECT_EQ(seen_, "b");
}

TEST_F(ChangeDispatcherTest, FailedReadIsRepeatedWithoutAFurtherChange) {
  StartWithGap(0, [] { return absl::OkStatus(); });
  Settle();
  feed_.failing = 1;
  Plan(0xb);
  Settle();
  EXPECT_EQ(seen_, "");
  dispatcher_->RetryFailedRead();
  Settle();
  EXPECT_EQ(seen_, "b");
}

TEST_F(ChangeDispatcherTest, DispatcherContinuesAfterAGap) {
  int gaps = 0;
  StartWithGap(1, [&gaps] {
    ++gaps;
    return absl::OkStatus();
  });
  Settle();
  EXPECT_EQ(gaps, 1);
  Plan(0xb);
  Settle();
  EXPECT_EQ(seen_, "b");
}

TEST_F(ChangeDispatcherTest, GapIsHandledAgainAfterAnError) {
  int gaps = 0;
  StartWithGap(2, [&gaps] { return ++gaps == 1 ? absl::InternalError("busy") : absl::OkStatus(); });
  Settle();
  EXPECT_EQ(gaps, 1);
  Plan(0xb);
  Settle();
  EXPECT_EQ(gaps, 2);
  Plan(0xc);
  Settle();
  EXPECT_NE(seen_.find('c'), std::string::npos);
}

TEST_F(ChangeDispatcherTest, GapIsHandledAgainAfterAnErrorWithoutAFurtherChange) {
  int gaps = 0;
  StartWithGap(2, [&gaps] { return ++gaps == 1 ? absl::InternalError("busy") : absl::OkStatus(); });
  Settle();
  EXPECT_EQ(gaps, 1);
  dispatcher_->RetryFailedRead();
  Settle();
  EXPECT_EQ(gaps, 2);
  dispatcher_->RetryFailedRead();
  Settle();
  EXPECT_EQ(gaps, 2);
}

}  // namespace
}  // namespace muster
