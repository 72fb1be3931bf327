#include "services/relay/files/share_outcomes.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/errors/shares.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/files/share_store_fixture.h"
#include "services/relay/files/share_test_util.h"

namespace muster {
namespace {

class ShareOutcomesTest : public ShareStoreFixture {
 protected:
  ShareRecord Held(bool from_parent = false) { return *Store(small_, file_, from_parent); }
  ShareRecord Now() { return *store_->Find(file_.key()); }

  const v1::SharedFile file_ = File(small_);
  FakeRouting routing_;
  ShareOutcomes outcomes_{*store_, clock_, "r1", routing_};
};

TEST_F(ShareOutcomesTest, DeliveredFileStaysAndWakesTheRouter) {
  const ShareRecord record = Held();
  clock_.Advance(absl::Seconds(5));
  outcomes_.Delivered(record);
  EXPECT_EQ(StateOf(*store_, file_), "held DELIVERED");
  EXPECT_EQ(Now().share.relay(), "r1");
  EXPECT_EQ(Now().share.change_time().seconds(), absl::ToUnixSeconds(clock_.Now()));
  EXPECT_FALSE(Now().unreported);
  EXPECT_EQ(Body(file_), small_);
  EXPECT_EQ(routing_.wakes, 1);
}

TEST_F(ShareOutcomesTest, OutcomeOfAFileOfTheParentIsToBeReported) {
  outcomes_.Delivered(Held(/*from_parent=*/true));
  EXPECT_TRUE(Now().unreported);
  outcomes_.Reported(Now());
  EXPECT_FALSE(Now().unreported);
  EXPECT_EQ(StateOf(*store_, file_), "held DELIVERED");
}

TEST_F(ShareOutcomesTest, RefusedFileEndsWithItsReason) {
  outcomes_.Refused(Held(), errors::TargetUnknown("n2"));
  EXPECT_EQ(StateOf(*store_, file_), "ended REFUSED");
  EXPECT_EQ(Now().share.reason().find("TARGET_UNKNOWN: "), 0u);
  EXPECT_EQ(store_->bytes(), 0);
}

TEST_F(ShareOutcomesTest, FileThatExpiredUpstreamIsExpired) {
  outcomes_.Refused(Held(), errors::ShareExpired(file_.key()));
  EXPECT_EQ(StateOf(*store_, file_), "ended EXPIRED");
}

TEST_F(ShareOutcomesTest, FileThatTheParentHasIsNotReported) {
  outcomes_.PassedUp(Held(/*from_parent=*/true), "parent");
  EXPECT_EQ(StateOf(*store_, file_), "up IN_TRANSIT");
  EXPECT_EQ(Now().share.relay(), "parent");
  EXPECT_FALSE(Now().unreported);
  EXPECT_EQ(store_->bytes(), 0);
}

TEST_F(ShareOutcomesTest, RemovalEndsAHeldFile) {
  outcomes_.RemovedByParent(Held());
  EXPECT_EQ(StateOf(*store_, file_), "ended REMOVED");
  EXPECT_TRUE(Now().unreported);
  EXPECT_FALSE(Now().removing);
}

TEST_F(ShareOutcomesTest, RemovalOfAFileThatAChildHasIsRequestedThere) {
  ShareRecord record = Held();
  const ShareRecord before = record;
  record.stage = ShareStage::kPassedDown;
  record.child = "r2";
  ASSERT_TRUE(store_->Update(before, record).ok());
  outcomes_.RemovedByParent(Now());
  EXPECT_EQ(StateOf(*store_, file_), "down REMOVED");
  EXPECT_TRUE(Now().removing);
  EXPECT_FALSE(Now().unreported);
}

TEST_F(ShareOutcomesTest, ChangedRecordIsLeftAsItIs) {
  const ShareRecord record = Held();
  outcomes_.Delivered(record);
  outcomes_.Refused(record, errors::TargetUnknown("n2"));
  EXPECT_EQ(StateOf(*store_, file_), "held DELIVERED");
  EXPECT_EQ(routing_.wakes, 2);
}

}  // namespace
}  // namespace muster
