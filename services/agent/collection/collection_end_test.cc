// Runs and commits that a relay reports falsely.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/agent/collection/testing/runner_fixture.h"
#include "services/client/attempt_state.h"
#include "services/common/base/error.h"
#include "services/common/base/mutex.h"
#include "services/common/errors/runs.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

class CollectionEndTest : public CollectionRunnerTest {
 protected:
  CollectionEndTest() {
    options_.max_parallel = 1;
    options_.on_worked = [this](const std::string& plugin) {
      if (plugin == "settled") ++settled_;
    };
    peer_.judge = [this]() -> absl::Status {
      if (accepts_) return absl::OkStatus();
      ++refusals_;
      return MakeError(absl::StatusCode::kPermissionDenied, "NOT_ATTACHED", "n1 is not here", "");
    };
    Begin();
  }
  ~CollectionEndTest() override { runner_.reset(); }

  void End() {
    v1::CollectionEnded ended;
    ended.set_run(fleet_.run);
    runner_->End(ended);
  }

  // Also waits for the removals that are due.
  void Advance(absl::Duration time) {
    clock_.Advance(time);
    executor_.AwaitIdle();
  }

  // Waits until the tasks before are forgotten.
  void Settle() {
    const int before = settled_;
    runner_->Offer(OfferOf(std::string(16, 'e'), {"settled"}, kNoWork), peer_.target());
    ASSERT_TRUE(testing::Await([&] { return settled_ > before; }));
  }

  void Produce() {
    const int before = refusals_;
    runner_->Offer(offer_, peer_.target());
    ASSERT_TRUE(testing::Await([&] { return refusals_ > before; }));
  }

  void ProduceAndEnd() {
    Produce();
    End();
    Settle();
  }

  void ExpectRemovalAfterAnHour() {
    Advance(absl::Minutes(59));
    EXPECT_TRUE(exists());
    Advance(absl::Minutes(1));
    EXPECT_FALSE(exists());
  }

  // Returns whether the state of the result exists; that of "settled" has no folder.
  bool exists() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/collections")) {
      if (entry.is_directory()) return true;
    }
    return false;
  }

  const std::string marks_ = folder_ + "/marks";
  const v1::CollectionOffer offer_ = Offer("echo x >> " + marks_ + "; " + kSayHello);
  std::atomic<bool> accepts_ = false;
  std::atomic<int> refusals_ = 0;
  std::atomic<int> settled_ = 0;
};

TEST_F(CollectionEndTest, OfferWithinAnHourContinuesTheDelivery) {
  ProduceAndEnd();
  Advance(absl::Minutes(59));
  accepts_ = true;
  EXPECT_EQ(Collect(offer_).body, "hello\n");
  EXPECT_EQ(std::filesystem::file_size(marks_), 2u);  // it ran once
}

TEST_F(CollectionEndTest, UndeliveredResultIsRemovedAnHourAfterTheFirstEnd) {
  ProduceAndEnd();
  Advance(absl::Minutes(59));
  End();  // of each welcome
  EXPECT_TRUE(exists());
  Advance(absl::Minutes(1));
  EXPECT_FALSE(exists());
  accepts_ = true;
  Collect(offer_);
  EXPECT_EQ(std::filesystem::file_size(marks_), 4u);
}

TEST_F(CollectionEndTest, OfferEndsTheTimeForTheRemoval) {
  ProduceAndEnd();
  runner_->Offer(offer_, peer_.target());
  const int before = refusals_;
  ASSERT_TRUE(testing::Await([&] { return refusals_ > before; }));
  Advance(absl::Hours(2));
  End();
  Settle();
  ExpectRemovalAfterAnHour();
}

TEST_F(CollectionEndTest, EndAfterARestartRemovesTheResultAnHourLater) {
  Produce();
  Begin();
  Advance(absl::Hours(2));
  EXPECT_TRUE(exists());
  End();
  ExpectRemovalAfterAnHour();
}

TEST_F(CollectionEndTest, ResultOfAnUnknownRunIsRemovedAfterAnHour) {
  peer_.judge = [this]() -> absl::Status {
    ++refusals_;
    return errors::RunNotFound(fleet_.run);
  };
  Produce();
  Settle();
  ExpectRemovalAfterAnHour();
}

TEST_F(CollectionEndTest, ResultOfAnUnknownRunIsRemovedAfterAnHourAlsoAfterARestart) {
  Produce();
  peer_.judge = [this]() -> absl::Status { return errors::RunNotFound(fleet_.run); };
  Begin();
  runner_->Offer(offer_, peer_.target());
  Settle();
  ExpectRemovalAfterAnHour();
}

TEST_F(CollectionEndTest, DeliveredResultIsRemovedAtTheEnd) {
  accepts_ = true;
  Collect(offer_);
  Settle();
  EXPECT_TRUE(exists());
  End();
  EXPECT_FALSE(exists());
}

TEST_F(CollectionEndTest, OtherCollectionsWaitWhileUndeliveredResultsAreAtTheirLimit) {
  Produce();
  Mutex mutex;
  std::vector<std::string> worked;
  options_.max_undelivered_bytes = 1;
  options_.on_worked = [&](const std::string& plugin) {
    MutexLock lock(mutex);
    worked.push_back(plugin);
  };
  Begin();
  accepts_ = true;
  runner_->Offer(OfferOf(std::string(16, 'e'), {"other"}, kNoWork), peer_.target());
  runner_->Offer(offer_, peer_.target());
  const std::vector<std::string> expected = {"facts", "other"};
  EXPECT_TRUE(testing::Await([&] {
    MutexLock lock(mutex);
    return worked == expected;
  }));
  runner_.reset();  // it uses the variables above
}

TEST_F(CollectionEndTest, EndOfARunMakesSpaceForOtherCollections) {
  Produce();
  options_.max_undelivered = 1;
  Begin();
  runner_->Offer(OfferOf(std::string(16, 'e'), {"settled"}, kNoWork), peer_.target());
  End();
  EXPECT_TRUE(testing::Await([&] { return settled_ > 0; }));
  EXPECT_FALSE(exists());
}

// The node was off for so long that no relay knows the run.
TEST_F(CollectionEndTest, EndOfTheRunIsAskedForAfterAnAttachment) {
  Produce();
  for (const auto& answer :
       {absl::StatusOr<v1::RunState>(v1::RUN_STATE_COMPLETE),
        absl::StatusOr<v1::RunState>(errors::RunNotFound(fleet_.run)),
        absl::StatusOr<v1::RunState>(errors::PairNotPlanned(fleet_.run, "*", "n1"))}) {
    Begin();
    peer_.run_state = [&] { return answer; };
    runner_->OnAttached(peer_.target());
    Advance(absl::Minutes(1));
    ExpectRemovalAfterAnHour();
    Produce();
  }
}

TEST_F(CollectionEndTest, ResultOfARunThatContinuesRemains) {
  Produce();
  Begin();
  peer_.run_state = [] { return v1::RUN_STATE_POST_PROCESSING; };
  runner_->OnAttached(peer_.target());
  Advance(absl::Minutes(1));
  Advance(absl::Hours(2));
  EXPECT_TRUE(exists());
}

TEST_F(CollectionEndTest, FleetIsAskedAgainIfItDoesNotAnswer) {
  Produce();
  Begin();
  std::atomic<int> asked = 0;
  peer_.run_state = [&]() -> absl::StatusOr<v1::RunState> {
    if (++asked == 1) return absl::UnavailableError("no way to the aggregator");
    return v1::RUN_STATE_CANCELLED;
  };
  runner_->OnAttached(peer_.target());
  Advance(absl::Minutes(1));
  Advance(absl::Hours(2));
  EXPECT_EQ(asked, 2);
  ExpectRemovalAfterAnHour();
  peer_.run_state = nullptr;
}

TEST_F(CollectionEndTest, FleetThatDoesNotAnswerInTimeIsAskedForOneRunOnly) {
  Produce();
  runner_.reset();
  const std::string other(16, 'd');
  {
    auto state = AgentState::Open(folder_ + "/collections", other, "facts", "n1").value();
    ASSERT_TRUE(state->MakeFolders().ok());
    const std::string path = state->results_dir() + "/result";
    std::ofstream(path) << "x";
    ASSERT_TRUE(state->SetProduced({path, "text/plain"}).ok());
  }
  Begin();
  std::atomic<int> asked = 0;
  peer_.run_state = [&]() -> absl::StatusOr<v1::RunState> {
    ++asked;
    return absl::DeadlineExceededError("the next relay does not answer");
  };
  runner_->OnAttached(peer_.target());
  Advance(absl::Minutes(1));
  EXPECT_EQ(asked, 1);
  peer_.run_state = nullptr;
}

// The second relay offers what the first one said was committed.
TEST_F(CollectionEndTest, CommitThatTheNextRelayDoesNotKnowIsRepeated) {
  accepts_ = true;
  Collect(offer_);
  Settle();
  peer_.Forget();
  runner_->OnAttached(peer_.target());
  EXPECT_EQ(Collect(offer_).body, "hello\n");
  EXPECT_EQ(std::filesystem::file_size(marks_), 4u);
}

// The first relay answers only after the node has moved to the second one.
TEST_F(CollectionEndTest, CommitThatIsAnsweredAfterTheOfferOfTheNextRelayIsChecked) {
  Mutex mutex;
  CondVar changed;
  int worked = 0;
  bool moved = false;
  options_.on_worked = [&](const std::string&) {
    MutexLock lock(mutex);
    ++worked;
    changed.NotifyAll();
    while (!moved) changed.Wait(mutex);
  };
  accepts_ = true;
  Begin();
  runner_->Offer(offer_, peer_.target());
  {
    MutexLock lock(mutex);
    while (worked == 0) changed.Wait(mutex);
  }
  peer_.Forget();
  runner_->OnAttached(peer_.target());
  runner_->Offer(offer_, peer_.target());
  {
    MutexLock lock(mutex);
    moved = true;
    changed.NotifyAll();
  }
  EXPECT_TRUE(testing::Await([&] { return peer_.committed().has_value(); }));
  EXPECT_EQ(std::filesystem::file_size(marks_), 4u);
  runner_.reset();  // it uses the variables above
}

TEST_F(CollectionEndTest, CommitThatTheNextRelayKnowsIsNotRepeated) {
  accepts_ = true;
  Collect(offer_);
  Settle();
  runner_->OnAttached(peer_.target());
  runner_->Offer(offer_, peer_.target());  // sent before the commit
  Settle();
  EXPECT_EQ(std::filesystem::file_size(marks_), 2u);
}

// The relay restarts while the plugin works, and offers it again.
TEST_F(CollectionEndTest, FailingPluginRunsOnceIfTheNodeAttachesAgainMeanwhile) {
  accepts_ = true;
  const auto offer = Offer("echo x >> " + marks_ + "; while [ ! -e " + folder_ +
                           "/go ]; do sleep 0.02; done; exit 7");
  runner_->Offer(offer, peer_.target());
  ASSERT_TRUE(testing::Await([&] { return std::filesystem::exists(marks_); }));
  runner_->OnAttached(peer_.target());
  runner_->Offer(offer, peer_.target());
  Write("go", "");
  Settle();
  EXPECT_TRUE(peer_.committed()->description.is_error());
  runner_->OnAttached(peer_.target());
  runner_->Offer(offer, peer_.target());  // sent before the commit
  Settle();
  Begin();  // a restart
  runner_->Offer(offer, peer_.target());
  Settle();
  EXPECT_EQ(std::filesystem::file_size(marks_), 2u);
}

TEST_F(CollectionEndTest, ErrorThatTheNextRelayDoesNotKnowIsDeliveredAgain) {
  accepts_ = true;
  const auto offer = Offer("echo x >> " + marks_ + "; exit 7");
  const std::string error = Collect(offer).body;
  Settle();
  peer_.Forget();
  runner_->OnAttached(peer_.target());
  EXPECT_EQ(Collect(offer).body, error);
  EXPECT_EQ(std::filesystem::file_size(marks_), 2u);
}

TEST_F(CollectionEndTest, CommitWithoutAnAnswerIsNotRepeated) {
  accepts_ = true;
  Collect(offer_);
  Settle();
  peer_.Forget();
  peer_.judge_read = [] { return absl::UnavailableError("no way to the aggregator"); };
  runner_->OnAttached(peer_.target());
  runner_->Offer(offer_, peer_.target());
  Settle();
  EXPECT_EQ(std::filesystem::file_size(marks_), 2u);
}

TEST_F(CollectionEndTest, OfferOfTheSameAttachmentIsNotChecked) {
  accepts_ = true;
  Collect(offer_);
  Settle();
  peer_.Forget();
  runner_->Offer(offer_, peer_.target());
  Settle();
  EXPECT_EQ(std::filesystem::file_size(marks_), 2u);
}

}  // namespace
}  // namespace muster
