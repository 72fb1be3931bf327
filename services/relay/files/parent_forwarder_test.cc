#include "services/relay/files/parent_forwarder.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/errors/results.h"
#include "services/common/errors/shares.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/files/share_store_fixture.h"
#include "services/relay/files/share_test_util.h"

namespace muster {
namespace {

using Calls = std::vector<std::string>;

class ParentForwarderTest : public ShareStoreFixture {
 protected:
  // Runs the posted work.
  void RunTasks() {
    while (!tasks_.empty()) {
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }
  ShareRecord Now() { return *store_->Find(file_.key()); }
  void SendNow() {
    forwarder_.Send(Now());
    RunTasks();
  }

  const v1::SharedFile file_ = File(body_);
  std::deque<absl::AnyInvocable<void()>> tasks_;
  bool accepts_ = true;
  FakeRouting routing_;
  FakeParent parent_;
  ShareOutcomes outcomes_{*store_, clock_, "r1", routing_};
  ParentForwarder forwarder_{*store_,
                             parent_,
                             outcomes_,
                             clock_,
                             {.first = absl::Seconds(1), .most = absl::Seconds(30)},
                             absl::Minutes(1),
                             [this](absl::AnyInvocable<void()> task) {
                               if (accepts_) tasks_.push_back(std::move(task));
                               return accepts_;
                             }};
};

TEST_F(ParentForwarderTest, SentFileIsDeletedHere) {
  ASSERT_TRUE(Store(body_, file_).ok());
  SendNow();
  EXPECT_EQ(parent_.Calls(), Calls{"send f"});
  EXPECT_TRUE(parent_.received == body_);
  EXPECT_EQ(StateOf(*store_, file_), "up IN_TRANSIT");
  EXPECT_EQ(Blobs(), 0);
}

TEST_F(ParentForwarderTest, FileIsSentOnceAtATime) {
  ASSERT_TRUE(Store(body_, file_).ok());
  forwarder_.Send(Now());
  forwarder_.Send(Now());
  RunTasks();
  EXPECT_EQ(parent_.Calls(), Calls{"send f"});
}

TEST_F(ParentForwarderTest, FullExecutorDelaysTheFile) {
  ASSERT_TRUE(Store(body_, file_).ok());
  accepts_ = false;
  SendNow();
  accepts_ = true;
  SendNow();
  EXPECT_EQ(parent_.Calls(), Calls{"send f"});
}

TEST_F(ParentForwarderTest, FailedSendWaitsForItsBackoff) {
  ASSERT_TRUE(Store(body_, file_).ok());
  parent_.send_result = errors::TooManyUploads(1);
  SendNow();
  SendNow();
  EXPECT_EQ(parent_.Calls(), Calls{"send f"});
  parent_.send_result = absl::OkStatus();
  clock_.Advance(absl::Seconds(4));
  SendNow();
  EXPECT_EQ(parent_.Calls(), Calls()) << "the parent asked for 5 s";
  clock_.Advance(absl::Seconds(30));
  SendNow();
  EXPECT_EQ(StateOf(*store_, file_), "up IN_TRANSIT");
}

TEST_F(ParentForwarderTest, ResetEndsTheBackoff) {
  ASSERT_TRUE(Store(body_, file_).ok());
  parent_.send_result = errors::TooManyUploads(1);
  SendNow();
  forwarder_.ResetBackoff();
  SendNow();
  EXPECT_EQ(parent_.Calls(), (Calls{"send f", "send f"}));
}

TEST_F(ParentForwarderTest, RefusalEndsTheFile) {
  ASSERT_TRUE(Store(body_, file_).ok());
  parent_.send_result = errors::TargetUnknown("n2");
  SendNow();
  EXPECT_EQ(StateOf(*store_, file_), "ended REFUSED");
}

TEST_F(ParentForwarderTest, DamagedFileIsRefusedAfterThreeMismatches) {
  ASSERT_TRUE(Store(body_, file_).ok());
  parent_.send_result = errors::DigestMismatch();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(StateOf(*store_, file_), "held IN_TRANSIT");
    SendNow();
    clock_.Advance(absl::Minutes(1));
  }
  EXPECT_EQ(StateOf(*store_, file_), "ended REFUSED");
}

TEST_F(ParentForwarderTest, RefusedDetourChangesNothing) {
  ASSERT_TRUE(Store(body_, file_).ok());
  parent_.send_result = errors::TargetUnknown("n2");
  forwarder_.SendIfElsewhere(Now());
  RunTasks();
  EXPECT_EQ(StateOf(*store_, file_), "held IN_TRANSIT");
}

TEST_F(ParentForwarderTest, FileThatTheParentLeavesHereIsOfferedAgainLater) {
  ASSERT_TRUE(Store(body_, file_).ok());
  parent_.retain = true;
  forwarder_.SendIfElsewhere(Now());
  RunTasks();
  EXPECT_EQ(StateOf(*store_, file_), "held IN_TRANSIT");
  clock_.Advance(absl::Seconds(59));
  forwarder_.SendIfElsewhere(Now());
  RunTasks();
  EXPECT_EQ(parent_.Calls().size(), 1u);
  clock_.Advance(absl::Seconds(3));
  forwarder_.SendIfElsewhere(Now());
  RunTasks();
  EXPECT_EQ(parent_.Calls(), Calls{"send-if-elsewhere f"});
}

TEST_F(ParentForwarderTest, NothingIsSentWithoutAParent) {
  ASSERT_TRUE(Store(body_, file_).ok());
  parent_.connected_to = 0;
  SendNow();
  forwarder_.Report(Now());
  RunTasks();
  EXPECT_EQ(parent_.Calls(), Calls());
}

TEST_F(ParentForwarderTest, StateOfAFileOfTheParentIsReportedUntilItSucceeds) {
  ASSERT_TRUE(Store(body_, file_, /*from_parent=*/true).ok());
  parent_.report_result = absl::UnavailableError("down");
  forwarder_.Report(Now());
  RunTasks();
  EXPECT_TRUE(Now().unreported);
  parent_.report_result = absl::OkStatus();
  clock_.Advance(absl::Minutes(1));
  forwarder_.Report(Now());
  RunTasks();
  EXPECT_FALSE(Now().unreported);
  EXPECT_EQ(parent_.Calls(), (Calls{"report f IN_TRANSIT", "report f IN_TRANSIT"}));
}

TEST_F(ParentForwarderTest, AbsentFileIsReportedAsRemoved) {
  forwarder_.ReportAbsent(file_.key(), "r1");
  RunTasks();
  EXPECT_EQ(parent_.Calls(), Calls{"report f REMOVED"});
  EXPECT_EQ(parent_.reported.relay(), "r1");
}

TEST_F(ParentForwarderTest, ForgottenFileHasNoBackoff) {
  ASSERT_TRUE(Store(body_, file_).ok());
  parent_.send_result = errors::TooManyUploads(1);
  SendNow();
  forwarder_.Retain([&](const std::string& id) { return id == Now().id; });
  SendNow();
  EXPECT_EQ(parent_.Calls().size(), 1u);
  forwarder_.Retain([](const std::string&) { return false; });
  SendNow();
  EXPECT_EQ(parent_.Calls().size(), 1u);
}

}  // namespace
}  // namespace muster
