#include "services/aggregator/runs/listener_waits.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

class ListenerWaitsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(harness_.Open().ok());
    waits_.emplace(store(), clock_, metrics_);
    ASSERT_TRUE(store().ApplyAndWait(MakeRun(kRun, {{"facts", "n1"}})).ok());
  }

  StateStore& store() { return harness_.state(); }

  void Report(const ListenerRecord& listener) {
    ASSERT_TRUE(store().ApplyAndWait(ReportListener{kRun, listener, 2'000'000}).ok());
  }

  void Wait(const std::string& run = kRun, ListenerKind kind = ListenerKind::kLegacy) {
    waits_->Wait(run, kind,
                 [this](absl::StatusOr<RunRecord> answer) { answers_.push_back(answer); });
  }

  SqliteHarness harness_;
  FakeClock clock_;
  Metrics metrics_;
  std::optional<ListenerWaits> waits_;
  std::vector<absl::StatusOr<RunRecord>> answers_;
};

TEST_F(ListenerWaitsTest, OpenListenerIsAnsweredImmediately) {
  Report({.port = 7450, .open = true});
  Wait();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].value().listener.port, 7450);
}

TEST_F(ListenerWaitsTest, WaitingCallsAreAnsweredOnceWhenTheListenerOpens) {
  Wait();
  Wait();
  waits_->Check();
  EXPECT_TRUE(answers_.empty());
  Report({.port = 7450, .open = true});
  waits_->Check();
  waits_->Check();
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_EQ(answers_[1].value().listener.port, 7450);
}

TEST_F(ListenerWaitsTest, RunWithTheFleetsStatusListenerIsAnsweredImmediately) {
  Wait(kRun, ListenerKind::kStatus);
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_TRUE(answers_[0].ok());
}

TEST_F(ListenerWaitsTest, OptionalListenerMayBeLateOrHaveAFault) {
  Wait(kRun, ListenerKind::kOptionalLegacy);
  waits_->Check();
  EXPECT_TRUE(answers_.empty());
  clock_.Advance(kOptionalListenerWait);
  waits_->Check();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].value().id, kRun);
  Report({.fault = "no port of the range is free"});
  Wait(kRun, ListenerKind::kOptionalLegacy);
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_FALSE(answers_[1].value().listener.open);
}

TEST_F(ListenerWaitsTest, OnlyTheSeparateStatusListenerIsWaitedFor) {
  ASSERT_TRUE(store().ApplyAndWait(SetStatusListener{.run = kRun}).ok());
  Report({.port = 7450, .open = true});
  Wait(kRun, ListenerKind::kStatus);
  EXPECT_TRUE(answers_.empty());
  const ListenerRecord open = {.port = 8010, .open = true};
  ASSERT_TRUE(store().ApplyAndWait(ReportStatusListener{kRun, open, 3'000'000}).ok());
  waits_->Check();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].value().status_listener->port, 8010);
}

TEST_F(ListenerWaitsTest, WaitThatExpiresReturnsTheFaultOfTheGateway) {
  Wait();
  Report({.fault = "no port of the range is free"});
  clock_.Advance(kListenerWait - absl::Seconds(1));
  waits_->Check();
  EXPECT_TRUE(answers_.empty());
  Wait();  // with its own time limit
  clock_.Advance(absl::Seconds(1));
  waits_->Check();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(ReasonOf(answers_[0].status()), "LISTENER_NOT_READY");
  EXPECT_NE(answers_[0].status().message().find("no port of the range is free"),
            absl::string_view::npos);
}

TEST_F(ListenerWaitsTest, WaitEndsWithTheRun) {
  Wait();
  ASSERT_TRUE(store().ApplyAndWait(EndRun{.run = kRun, .at = 3'000'000}).ok());
  waits_->Check();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(ReasonOf(answers_[0].status()), "RUN_ENDED");
}

TEST_F(ListenerWaitsTest, StopAnswersAllWaitingCalls) {
  Wait();
  Wait(kRun, ListenerKind::kOptionalLegacy);
  waits_->Stop();
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_EQ(ReasonOf(answers_[0].status()), "AGGREGATOR_STOPPING");
  EXPECT_EQ(ReasonOf(answers_[1].status()), "AGGREGATOR_STOPPING");
}

TEST_F(ListenerWaitsTest, CallAfterStopDoesNotWait) {
  waits_->Stop();
  Wait();
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(ReasonOf(answers_[0].status()), "AGGREGATOR_STOPPING");
  Report({.port = 7450, .open = true});
  Wait();
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_TRUE(answers_[1].ok());
}

TEST_F(ListenerWaitsTest, UnknownRunIsAnsweredImmediately) {
  Wait("bbbbbbbbbbbbbbbb");
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(ReasonOf(answers_[0].status()), "RUN_NOT_FOUND");
}

}  // namespace
}  // namespace muster
