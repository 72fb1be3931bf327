#include "services/aggregator/runs/lifecycle.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "services/aggregator/testing/test_state.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using testing::TestState;

constexpr absl::Duration kToDeadline = absl::Microseconds(kDeadline - kCreated);
const absl::Duration kToSeal = kToDeadline + absl::Microseconds(kGrace);

constexpr char kActor[] = "spiffe://f.muster/service/aggregator/main";

class LifecycleTest : public ::testing::Test {
 protected:
  ~LifecycleTest() override {
    if (lifecycle_) lifecycle_->Stop();
  }

  // Starts as the service does, also after a crash.
  void Start() {
    if (lifecycle_) lifecycle_->Stop();
    lifecycle_ =
        std::make_shared<Lifecycle>(state_.store(), state_.uploads(), state_.clock,
                                    state_.executor(), state_.clock, redeliveries_, kActor);
    ASSERT_TRUE(lifecycle_
                    ->Start([this](const std::string& run) {
                      sealed_.push_back(run);
                      return on_seal_();
                    })
                    .ok());
    PassTime(absl::ZeroDuration());
  }

  // Moves the clock and runs everything that is due.
  void PassTime(absl::Duration time) {
    state_.clock.Advance(time);
    for (int i = 0; i < 3; ++i) {  // a review may request another one
      state_.Settle();
      state_.clock.Advance(absl::ZeroDuration());
    }
    state_.Settle();
  }

  void Lose(std::string_view node) {
    state_.Apply(TimeOutPair{
        .key = KeyOf(node), .error = "lost", .at = absl::ToUnixMicros(state_.clock.Now())});
    lifecycle_->ReviewSoon(kRun);
    PassTime(absl::ZeroDuration());
  }

  bool HasAuthority() { return state_.store().GetAuthority(kRun)->has_value(); }

  TestState state_;
  std::vector<std::string> sealed_;  // written by the executor; read after Settle
  std::function<absl::Duration()> on_seal_ = [] { return absl::ZeroDuration(); };
  RedeliveryWait redeliveries_{state_.store(), state_.blobs(), state_.clock, kActor};
  std::shared_ptr<Lifecycle> lifecycle_;
};

TEST_F(LifecycleTest, DeadlineTimesOutMissingPairsAndStartsTheGrace) {
  state_.Plan({"n1", "n2"});
  state_.Apply(Genuine(KeyOf("n1"), "{}"));
  Start();
  PassTime(kToDeadline - absl::Seconds(1));
  EXPECT_EQ(state_.Run().state, RunState::kRunning);
  PassTime(absl::Seconds(1));
  EXPECT_EQ(state_.Run().state, RunState::kPostProcessing);
  EXPECT_EQ(state_.Run().timed_out, 1);
  EXPECT_EQ(state_.Run().genuine, 1);
  PassTime(absl::Microseconds(kGrace) - absl::Seconds(1));
  EXPECT_TRUE(sealed_.empty());
  PassTime(absl::Seconds(1));
  EXPECT_EQ(sealed_, std::vector<std::string>{kRun});
}

TEST_F(LifecycleTest, CompleteRunIsSealedImmediately) {
  state_.Plan({"n1"});
  Start();
  state_.Apply(Genuine(KeyOf("n1"), "{}"));
  EXPECT_TRUE(sealed_.empty());
  lifecycle_->ReviewSoon(kRun);
  PassTime(absl::ZeroDuration());
  EXPECT_EQ(sealed_, std::vector<std::string>{kRun});
}

TEST_F(LifecycleTest, SealWaitsForRequestedRedeliveriesWithinTheGrace) {
  state_.Plan({"n1"});
  state_.Apply(Genuine(KeyOf("n1"), "{}"));
  state_.Apply(RecordDamage{.key = KeyOf("n1"), .generation = 1, .damage = "differs"});
  Start();
  EXPECT_TRUE(sealed_.empty());
  PassTime(absl::Microseconds(kGrace) - absl::Seconds(1));
  EXPECT_TRUE(sealed_.empty());
  PassTime(absl::Seconds(1));
  EXPECT_EQ(sealed_, std::vector<std::string>{kRun});
}

TEST_F(LifecycleTest, DeclinedRedeliveryDelaysTheSealNoLonger) {
  state_.Plan({"n1"});
  state_.Apply(Genuine(KeyOf("n1"), "{}"));
  state_.Apply(RecordDamage{.key = KeyOf("n1"), .generation = 1, .damage = "differs"});
  Start();
  EXPECT_TRUE(sealed_.empty());
  state_.Apply(DeclineRedelivery{.key = KeyOf("n1"), .reason = "not kept"});
  lifecycle_->ReviewSoon(kRun);
  PassTime(absl::ZeroDuration());
  EXPECT_EQ(sealed_, std::vector<std::string>{kRun});
}

// Both were opened while the archive was built.
TEST_F(LifecycleTest, SealedRunWithADamagedResultEndsAllOtherUploads) {
  state_.Plan({"n1", "n2"});
  state_.Apply(Genuine(KeyOf("n1"), "content"));
  state_.Apply(RecordDamage{.key = KeyOf("n1"), .generation = 1, .damage = "differs"});
  state_.Apply(TimeOutRun{kRun, "too late", kDeadline});
  const auto awaited = state_.OpenUploadAndWait(Opening(KeyOf("n1"), "").upload);
  const auto late = state_.OpenUploadAndWait(Opening(KeyOf("n2"), "").upload);
  ASSERT_TRUE(awaited.ok() && late.ok()) << awaited.status() << late.status();
  const int64_t change = (*state_.store().GetRun(kRun))->last_change;
  ASSERT_TRUE(state_.Apply(SealRun{kRun, {}, change, kDeadline + 1}).changed);
  Start();
  EXPECT_TRUE(state_.uploads().Find(awaited->id).ok());
  EXPECT_FALSE(state_.uploads().Find(late->id).ok());
  state_.Apply(RecordDamage{.key = KeyOf("n1"), .generation = 1});
  lifecycle_->ReviewSoon(kRun);
  PassTime(absl::ZeroDuration());
  EXPECT_FALSE(state_.uploads().Find(awaited->id).ok());
}

// The review has read the run, and has not yet scheduled the next review.
TEST_F(LifecycleTest, ChangeDuringAReviewIsReviewedImmediately) {
  state_.Plan({"n1"});
  state_.Apply(Genuine(KeyOf("n1"), "{}"));
  on_seal_ = [this] {
    if (sealed_.size() == 1) lifecycle_->ReviewSoon(kRun);
    return absl::Seconds(30);
  };
  Start();
  EXPECT_EQ(sealed_.size(), 2U);
  PassTime(absl::Seconds(29));
  EXPECT_EQ(sealed_.size(), 2U);
  PassTime(absl::Seconds(1));
  EXPECT_EQ(sealed_.size(), 3U);
}

TEST_F(LifecycleTest, GraceBeginsWhenAllMissingPairsAreLost) {
  state_.Plan({"n1", "n2"});
  Start();
  state_.Apply(Genuine(KeyOf("n1"), "{}"));
  PassTime(absl::Seconds(10));  // long before the deadline
  Lose("n2");
  EXPECT_EQ(state_.Run().state, RunState::kPostProcessing);
  PassTime(absl::Microseconds(kGrace) - absl::Seconds(1));
  EXPECT_TRUE(sealed_.empty());
  PassTime(absl::Seconds(1));
  EXPECT_EQ(sealed_, std::vector<std::string>{kRun});
}

TEST_F(LifecycleTest, LastLateResultEndsTheGrace) {
  state_.Plan({"n1"});
  Start();
  Lose("n1");
  EXPECT_TRUE(sealed_.empty());
  EXPECT_EQ(state_.Apply(Genuine(KeyOf("n1"), "{}")).verdict, CommitResult::Verdict::kCommitted);
  lifecycle_->ReviewSoon(kRun);
  PassTime(absl::ZeroDuration());
  EXPECT_EQ(sealed_, std::vector<std::string>{kRun});
}

TEST_F(LifecycleTest, DeliveringLostSenderDelaysTheSealUntilTheEndOfItsTime) {
  state_.Plan({"n1"});
  Start();
  const auto opened = state_.OpenUploadAndWait(Opening(KeyOf("n1"), "").upload);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto session = *state_.uploads().Find(opened->id);
  ASSERT_TRUE(session->Attach(opened->epoch, UploadPeer(), [](const absl::Status&) {}).ok());
  Lose("n1");
  const absl::Duration held = absl::Microseconds(kDeadline + kGrace) -
                              (state_.clock.Now() - absl::UnixEpoch()) - absl::Seconds(1);
  for (absl::Duration passed; passed < held; passed += absl::Seconds(1)) {
    PassTime(absl::Seconds(1));
  }
  EXPECT_TRUE(sealed_.empty());
  PassTime(absl::Seconds(5));
  EXPECT_EQ(sealed_, std::vector<std::string>{kRun});
}

TEST_F(LifecycleTest, GraceAfterTheDeadlineIsNotExtended) {
  // The last pair had its outcome while the service was down at the deadline.
  state_.Plan({"n1"});
  state_.clock.Advance(kToDeadline + absl::Seconds(15));
  Start();
  EXPECT_EQ(state_.Run().timed_out, 1);
  PassTime(absl::Microseconds(kGrace) - absl::Seconds(15));
  EXPECT_EQ(sealed_, std::vector<std::string>{kRun});
}

TEST_F(LifecycleTest, FailFastRunFailsAtItsDeadline) {
  CreateRun command = MakeRun(kRun, {{"facts", "n1"}});
  command.run.fail_fast = true;
  state_.Apply(std::move(command));
  Start();
  PassTime(kToDeadline);
  EXPECT_EQ(state_.Run().state, RunState::kFailed);
  EXPECT_EQ(state_.store().Audit({.run = kRun}, "", 10)->items.back().actor, kActor);
  PassTime(kToSeal);
  EXPECT_TRUE(sealed_.empty());
}

TEST_F(LifecycleTest, StepsThatBecameDueWhileDownRunAtTheStart) {
  state_.Plan({"n1"});
  state_.clock.Advance(kToSeal + absl::Hours(1));
  Start();
  EXPECT_EQ(state_.Run().timed_out, 1);
  EXPECT_EQ(sealed_, std::vector<std::string>{kRun});
  // A crash before the archive was built: the start requests it again.
  Start();
  EXPECT_EQ(sealed_.size(), 2U);
}

TEST_F(LifecycleTest, JumpOfTheWallClockIsNoticedWithinAMinute) {
  state_.Plan({"n1"});
  Start();
  state_.clock.JumpWall(absl::FromUnixMicros(kDeadline) + absl::Hours(1));
  PassTime(absl::Seconds(59));
  EXPECT_EQ(state_.Run().timed_out, 0);
  PassTime(absl::Seconds(1));
  EXPECT_EQ(state_.Run().timed_out, 1);
}

TEST_F(LifecycleTest, CaOfAnEndedRunIsDeletedAfterAnHour) {
  state_.Plan({"n1"});
  state_.Apply(EndRun{.run = kRun, .at = kCreated});
  Start();
  PassTime(kAuthorityAfterEnd - absl::Seconds(1));
  EXPECT_TRUE(HasAuthority());
  PassTime(absl::Seconds(1));
  EXPECT_FALSE(HasAuthority());
  EXPECT_FALSE(state_.Run().listener.open);
  EXPECT_TRUE(sealed_.empty());
}

TEST_F(LifecycleTest, UploadsOfACancelledRunEndWithTheReason) {
  state_.Plan({"n1"});
  UploadRecord upload = Opening(KeyOf("n1"), "").upload;
  const auto opened = state_.OpenUploadAndWait(upload);
  ASSERT_TRUE(opened.ok()) << opened.status();
  Start();
  EXPECT_TRUE(state_.uploads().Find(opened->id).ok());
  state_.Apply(EndRun{.run = kRun, .at = kCreated});
  lifecycle_->ReviewSoon(kRun);
  PassTime(absl::ZeroDuration());
  EXPECT_EQ(ReasonOf(state_.uploads().Find(opened->id).status()), "UPLOAD_NOT_FOUND");
}

TEST_F(LifecycleTest, NothingRunsAfterStop) {
  state_.Plan({"n1"});
  Start();
  lifecycle_->Stop();
  lifecycle_->ReviewSoon(kRun);
  PassTime(kToSeal);
  EXPECT_EQ(state_.Run().state, RunState::kPlanned);
  EXPECT_EQ(state_.clock.waiting_timers(), 0U);
}

}  // namespace
}  // namespace muster
