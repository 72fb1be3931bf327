// The contract of every ChangeFeed driver. A driver's test includes this file and instantiates
// ChangeFeedContract with a StoreHarnessFactory whose feed keeps 100 changes.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_CHANGE_FEED_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_CHANGE_FEED_CONTRACT_H_

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/base/mutex.h"
#include "services/common/store/contract/store_harness.h"

namespace muster {

class ChangeFeedContract : public ::testing::TestWithParam<StoreHarnessFactory> {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    const absl::Status opened = harness_->Open();
    ASSERT_TRUE(opened.ok()) << opened;
  }

  template <typename C>
  typename C::Result Apply(C command) {
    auto result = harness_->state().ApplyAndWait(std::move(command));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : typename C::Result{};
  }

  void Plan(int nodes) {
    std::vector<PlannedPair> pairs;
    for (int i = 1; i <= nodes; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
    Apply(MakeRun(kRun, pairs));
  }

  // Writes revocations: the smallest commands with one change each.
  void Write(int count, std::string_view name = "x") {
    for (int i = 0; i < count; ++i) {
      Apply(Revoke{{.subject = absl::StrCat(std::string(name), i), .at = i}});
    }
  }

  // Returns the kinds of all changes as letters, in order.
  std::string Kinds(int64_t after = 0) {
    std::string kinds;
    auto changes = harness_->feed().Read(after, 10'000);
    EXPECT_TRUE(changes.ok()) << changes.status();
    for (const ChangeRecord& change : *changes) {
      EXPECT_EQ(change.sequence, ++after);
      kinds += "?rRDVCO"[static_cast<int>(change.kind)];
    }
    return kinds;
  }

  std::unique_ptr<StoreHarness> harness_ = GetParam()();
};

TEST_P(ChangeFeedContract, NewFeedIsEmpty) {
  EXPECT_EQ(*harness_->feed().Last(), 0);
  EXPECT_TRUE(harness_->feed().Read(0, 10)->empty());
  EXPECT_EQ(ReasonOf(harness_->feed().Read(1, 10).status()), "CURSOR_UNKNOWN");
  EXPECT_TRUE(absl::IsOutOfRange(harness_->feed().Read(-1, 10).status()));
}

TEST_P(ChangeFeedContract, ContainsTheChangesOfARun) {
  Plan(3);
  EXPECT_EQ(Kinds(), "C");
  Apply(Opening(KeyOf("n1"), "u1"));
  EXPECT_EQ(Kinds(), "Cr");  // running
  Apply(Genuine(KeyOf("n1"), "abc"));
  Apply(Genuine(KeyOf("n1"), "abc"));    // no change
  Apply(Genuine(KeyOf("n1"), "other"));  // refused
  EXPECT_EQ(Kinds(), "CrR");
  Apply(Failed(KeyOf("n2"), "broken", 7));
  auto error = harness_->feed().Read(3, 1);
  ASSERT_EQ(error->size(), 1u);
  EXPECT_EQ((*error)[0].sequence, 4);
  EXPECT_EQ((*error)[0].at, 7);
  EXPECT_EQ((*error)[0].run, kRun);
  EXPECT_EQ((*error)[0].plugin, "facts");
  EXPECT_EQ((*error)[0].node, "n2");
  EXPECT_EQ((*error)[0].outcome, Outcome::kError);
  EXPECT_EQ((*error)[0].generation, 1);
  EXPECT_EQ((*error)[0].text, "broken");
  Apply(TimeOutRun{.run = kRun, .error = "late", .at = 8});
  EXPECT_EQ(Kinds(), "CrRRRr");  // the last pair, then the run
  EXPECT_EQ((*harness_->state().GetRun(kRun))->last_change, 6);
  Apply(Genuine(KeyOf("n3"), "abc", 9));
  auto replaced = harness_->feed().Read(6, 1);
  EXPECT_EQ((*replaced)[0].generation, 2);
  EXPECT_EQ((*replaced)[0].size, 3);
  EXPECT_EQ((*harness_->state().GetRun(kRun))->last_change, 7);
  Apply(ReportListener{.run = kRun, .listener = {.port = 5, .open = true}});
  Apply(ReportListener{.run = kRun, .listener = {.port = 5, .open = true}});  // no change
  Apply(SealRun{.run = kRun, .begun_at_change = 7});
  Apply(WipeAuthority{.run = kRun});
  Apply(DeleteRun{.run = kRun});
  EXPECT_EQ(Kinds(), "CrRRRrRrrrD");
  Apply(Revoke{{.subject = "spiffe://f/user/bob"}});
  Apply(Revoke{{.subject = "spiffe://f/user/bob"}});
  auto revoked = harness_->feed().Read(11, 10);
  ASSERT_EQ(revoked->size(), 1u);
  EXPECT_EQ((*revoked)[0].kind, ChangeKind::kRevoked);
  EXPECT_EQ((*revoked)[0].text, "spiffe://f/user/bob");
  EXPECT_EQ(*harness_->feed().Last(), 12);
  Apply(RecordIssued{.issued = {.uri = "spiffe://f/user/ann", .issuer = "i", .serial = "1"},
                     .of_operator = true});
  Apply(RecordIssued{.issued = {.uri = "spiffe://f/service/jobs/j", .issuer = "i", .serial = "2"}});
  auto recorded = harness_->feed().Read(12, 10);
  ASSERT_EQ(recorded->size(), 1u);
  EXPECT_EQ((*recorded)[0].kind, ChangeKind::kOperator);
  EXPECT_EQ((*recorded)[0].text, "spiffe://f/user/ann");
  Reopen();
  EXPECT_EQ(Kinds(), "CrRRRrRrrrDVO");
  EXPECT_EQ(*harness_->feed().Last(), 13);
}

TEST_P(ChangeFeedContract, LastResultPrecedesTheChangeOfItsRun) {
  Plan(2);
  Apply(Genuine(KeyOf("n1"), "1"));
  Apply(Genuine(KeyOf("n2"), "2"));
  EXPECT_EQ(Kinds(), "CRrRr");
}

TEST_P(ChangeFeedContract, OldChangesAreDropped) {
  Write(300);
  // The feed keeps the newest hundred changes and drops the others soon.
  int64_t first = 0;
  for (int tries = 0; tries < 10'000; ++tries) {
    if (!harness_->feed().Read(0, 1).ok()) break;
    std::this_thread::yield();
  }
  const absl::Status refused = harness_->feed().Read(first, 1).status();
  EXPECT_TRUE(absl::IsOutOfRange(refused));
  EXPECT_EQ(ReasonOf(refused), "CURSOR_COMPACTED");
  EXPECT_EQ(harness_->feed().Read(200, 1000)->size(), 100u);
  EXPECT_TRUE(harness_->feed().Read(300, 1000)->empty());
  EXPECT_EQ(ReasonOf(harness_->feed().Read(301, 1).status()), "CURSOR_UNKNOWN");
  Reopen();
  EXPECT_EQ(*harness_->feed().Last(), 300);
  Write(1, "y");
  EXPECT_EQ(*harness_->feed().Last(), 301);
}

TEST_P(ChangeFeedContract, SubscribersAreCalledAfterEveryCommit) {
  Mutex mutex;  // protects `last`
  CondVar heard;
  int64_t last = 0;
  auto subscription = harness_->feed().Subscribe([&](int64_t now) {
    MutexLock lock(mutex);
    EXPECT_GT(now, last);
    last = now;
    heard.NotifyAll();
  });
  Write(10);
  {
    MutexLock lock(mutex);
    ASSERT_TRUE(heard.WaitFor(mutex, absl::Seconds(30),
                              [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return last == 10; }));
  }
  Apply(AppendAudit{});  // no change: no callback
  EXPECT_EQ(harness_->feed().Read(0, 100)->size(), 10u);
  subscription.reset();
  Write(3, "y");
  MutexLock lock(mutex);
  EXPECT_EQ(last, 10);
}

TEST_P(ChangeFeedContract, SubscriptionEndsDuringWrites) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) Apply(Revoke{{.subject = absl::StrCat("w", i)}});
  });
  for (int i = 0; i < 100; ++i) {
    auto alive = std::make_unique<std::atomic<bool>>(true);
    auto subscription =
        harness_->feed().Subscribe([&alive = *alive](int64_t) { ASSERT_TRUE(alive.load()); });
    std::this_thread::yield();
    subscription.reset();
    alive->store(false);
  }
  stop = true;
  writer.join();
}

TEST_P(ChangeFeedContract, FollowerReadsEveryChange) {
  constexpr int kNodes = 60;
  Plan(kNodes);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1 + t; i <= kNodes; i += 4) {
        Apply(Genuine(KeyOf(absl::StrCat("n", i)), "x"));
      }
    });
  }
  int64_t cursor = 0;
  int results = 0;
  while (results < kNodes) {
    auto changes = harness_->feed().Read(cursor, 7);
    ASSERT_TRUE(changes.ok()) << changes.status();
    for (const ChangeRecord& change : *changes) {
      ASSERT_EQ(change.sequence, ++cursor);
      results += change.kind == ChangeKind::kResult ? 1 : 0;
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_CHANGE_FEED_CONTRACT_H_
