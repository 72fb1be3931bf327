// Runs and commits that a relay reports falsely.
#include <atomic>
#include <filesystem>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "services/agent/collection/testing/runner_fixture.h"
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

  // Waits until the tasks before are forgotten.
  void Settle() {
    const int before = settled_;
    runner_->Offer(OfferOf(std::string(16, 'e'), {"settled"}, kNoWork), peer_.target());
    ASSERT_TRUE(testing::Await([&] { return settled_ > before; }));
  }

  void Produce() {
    runner_->Offer(offer_, peer_.target());
    ASSERT_TRUE(testing::Await([&] { return refusals_ > 0; }));
  }

  void ProduceAndEnd() {
    Produce();
    End();
    Settle();
  }

  void ExpectRemovalAfterAnHour() {
    clock_.Advance(absl::Minutes(59));
    EXPECT_TRUE(exists());
    clock_.Advance(absl::Minutes(1));
    EXPECT_TRUE(testing::Await([&] { return !exists(); }));
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
  clock_.Advance(absl::Minutes(59));
  accepts_ = true;
  EXPECT_EQ(Collect(offer_).body, "hello\n");
  EXPECT_EQ(std::filesystem::file_size(marks_), 2u);  // it ran once
}

TEST_F(CollectionEndTest, UndeliveredResultIsRemovedAnHourAfterTheFirstEnd) {
  ProduceAndEnd();
  clock_.Advance(absl::Minutes(59));
  End();  // of each welcome
  EXPECT_TRUE(exists());
  clock_.Advance(absl::Minutes(1));
  EXPECT_TRUE(testing::Await([&] { return !exists(); }));
  accepts_ = true;
  Collect(offer_);
  EXPECT_EQ(std::filesystem::file_size(marks_), 4u);
}

TEST_F(CollectionEndTest, OfferEndsTheTimeForTheRemoval) {
  ProduceAndEnd();
  runner_->Offer(offer_, peer_.target());
  const int before = refusals_;
  ASSERT_TRUE(testing::Await([&] { return refusals_ > before; }));
  clock_.Advance(absl::Hours(2));
  End();
  Settle();
  ExpectRemovalAfterAnHour();
}

TEST_F(CollectionEndTest, EndAfterARestartRemovesTheResultAnHourLater) {
  Produce();
  Begin();
  clock_.Advance(absl::Hours(2));
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

TEST_F(CollectionEndTest, RemovalsAreBounded) {
  options_.max_undelivered = 0;
  Begin();
  ProduceAndEnd();
  clock_.Advance(absl::Hours(2));
  EXPECT_TRUE(exists());
  accepts_ = true;
  EXPECT_EQ(Collect(offer_).body, "hello\n");
  EXPECT_EQ(std::filesystem::file_size(marks_), 2u);
}

// The second relay offers what the first one said was committed.
TEST_F(CollectionEndTest, CommitThatTheNextRelayDoesNotKnowIsRepeated) {
  accepts_ = true;
  Collect(offer_);
  Settle();
  peer_.Forget();
  runner_->OnAttached();
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
  runner_->OnAttached();
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
  runner_->OnAttached();
  runner_->Offer(offer_, peer_.target());  // sent before the commit
  Settle();
  EXPECT_EQ(std::filesystem::file_size(marks_), 2u);
}

TEST_F(CollectionEndTest, CommitWithoutAnAnswerIsNotRepeated) {
  accepts_ = true;
  Collect(offer_);
  Settle();
  peer_.Forget();
  peer_.judge_read = [] { return absl::UnavailableError("no way to the aggregator"); };
  runner_->OnAttached();
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
