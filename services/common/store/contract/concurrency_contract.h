// The contract of every StateStore for concurrent commands, included by state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_CONCURRENCY_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_CONCURRENCY_CONTRACT_H_

#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

TEST_P(StateStoreContract, CallbacksRunInTheOrderOfTheCalls) {
  Plan(200);
  std::vector<int> order;
  std::promise<void> last;
  for (int i = 1; i <= 200; ++i) {
    store().Apply(Genuine(KeyOf(absl::StrCat("n", i)), "x"),
                  [&, i](absl::StatusOr<CommitResult::Result> result) {
                    ASSERT_TRUE(result.ok()) << result.status();
                    EXPECT_EQ(result->last, i == 200);
                    order.push_back(i);
                    if (i == 200) last.set_value();
                  });
  }
  last.get_future().wait();
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[i], i + 1);
  ExpectCounters(0, 200, 0, 0);
}

TEST_P(StateStoreContract, FailedCommandDoesNotAffectOthers) {
  Plan(100);
  std::atomic<int> good = 0;
  std::promise<void> last;
  for (int i = 1; i <= 100; ++i) {
    // Every tenth command fails.
    const std::string body(i % 10 == 0 ? kInlineLimit + 1 : 3, 'x');
    store().Apply(Genuine(KeyOf(absl::StrCat("n", i)), body),
                  [&, i](absl::StatusOr<CommitResult::Result> result) {
                    EXPECT_EQ(result.ok(), i % 10 != 0) << i;
                    good += result.ok() ? 1 : 0;
                    if (i == 100) last.set_value();
                  });
  }
  last.get_future().wait();
  EXPECT_EQ(good, 90);
  ExpectCounters(10, 90, 0, 0);
}

TEST_P(StateStoreContract, ConcurrentCommitsAreConsistent) {
  constexpr int kThreads = 8;
  constexpr int kNodes = 40;
  Plan(kNodes);
  std::atomic<int> committed = 0, same = 0, conflict = 0, last = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= kNodes; ++i) {
        // Half of the threads commit the same content, the others different content.
        const auto result = Apply(
            Genuine(KeyOf(absl::StrCat("n", i)), t % 2 == 0 ? "agreed" : absl::StrCat("x", t)));
        committed += result.verdict == CommitVerdicts::kCommitted;
        same += result.verdict == CommitVerdicts::kSame;
        conflict += result.verdict == CommitVerdicts::kConflict;
        last += result.last;
        const auto view = store().GetRun(kRun);
        ASSERT_TRUE(view.ok());
        const RunRecord& run = (*view)->run;
        ASSERT_EQ(run.planned, run.pending + run.genuine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(committed, kNodes);
  EXPECT_EQ(committed + same + conflict, kThreads * kNodes);
  EXPECT_EQ(last, 1);
  ExpectCounters(0, kNodes, 0, 0);
}

// A commit does not wait until a large plan is complete.
TEST_P(StateStoreContract, LargePlanDoesNotBlockCommits) {
  Plan(1);
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 50'000; ++i) pairs.push_back({"facts", absl::StrCat("node-", i)});
  pairs.push_back(pairs.front());  // named twice
  CreateRun large = MakeRun("bbbbbbbbbbbbbbbb", pairs);
  CreateRun again = MakeRun("cccccccccccccccc", pairs);
  again.run.request_id = large.run.request_id;
  std::vector<std::string> order;
  std::promise<void> held, release, last;
  // Both are queued together, so that the plan is applied before the result.
  store().Apply(AppendAudit{}, [&](absl::StatusOr<AppendAudit::Result>) {
    held.set_value();
    release.get_future().wait();
  });
  held.get_future().wait();
  store().Apply(std::move(large), [&](absl::StatusOr<CreateRun::Result> result) {
    EXPECT_TRUE(result.ok() && !result->existed) << result.status();
    order.push_back("large");
  });
  store().Apply(std::move(again), [&](absl::StatusOr<CreateRun::Result> result) {
    EXPECT_TRUE(result.ok() && result->existed) << result.status();
    EXPECT_EQ(result.ok() ? result->run : "", "bbbbbbbbbbbbbbbb");
    order.push_back("again");
    last.set_value();
  });
  store().Apply(Genuine(KeyOf("n1"), "x"), [&](absl::StatusOr<CommitResult::Result> result) {
    EXPECT_TRUE(result.ok() && result->verdict == CommitVerdicts::kCommitted);
    order.push_back("result");
  });
  release.set_value();
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector<std::string>{"result", "large", "again"}));
  EXPECT_EQ(Run("bbbbbbbbbbbbbbbb").run.planned, 50'000);
  EXPECT_EQ(Run("bbbbbbbbbbbbbbbb").run.pending, 50'000);
  EXPECT_TRUE(*store().IsPlanned(Other("node-49999")));
  EXPECT_FALSE(store().GetRun("cccccccccccccccc")->has_value());
}

TEST_P(StateStoreContract, LargePlanIsCreated) {
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 20'000; ++i) pairs.push_back({"facts", absl::StrCat("node-", i)});
  Apply(MakeRun(kRun, std::move(pairs)));
  EXPECT_EQ(Run().run.pending, 20'000);
  EXPECT_EQ(Apply(TimeOutRun{.run = kRun, .error = "x", .at = 5}).timed_out, 20'000);
  ExpectCounters(0, 0, 0, 20'000);
  EXPECT_EQ(Result(KeyOf("node-19999")).outcome, Outcome::kTimedOut);
  Apply(EndRun{.run = kRun, .state = RunState::kFailed});
  EXPECT_TRUE(Apply(DeleteRun{.run = kRun}).deleted);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_CONCURRENCY_CONTRACT_H_
