#include "services/relay/files/share_step.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

using Kind = TargetRoute::Kind;

class ShareStepTest : public ::testing::Test {
 protected:
  ShareStepTest() {
    record_.stage = ShareStage::kHeld;
    record_.share.set_state(v1::SHARE_STATE_IN_TRANSIT);
  }

  ShareStep Next(Kind kind, bool attached = false) const {
    return NextStep(record_, {kind, "child", attached}, is_root_, settled_);
  }

  ShareRecord record_;
  bool is_root_ = false;
  bool settled_ = true;
};

TEST_F(ShareStepTest, FileThatIsNotHeldWaits) {
  for (const ShareStage stage :
       {ShareStage::kPassedUp, ShareStage::kPassedDown, ShareStage::kEnded}) {
    record_.stage = stage;
    EXPECT_EQ(Next(Kind::kDownstream), ShareStep::kWait);
  }
}

TEST_F(ShareStepTest, TargetDownstreamIsOffered) {
  EXPECT_EQ(Next(Kind::kDownstream), ShareStep::kOffer);
  record_.share.set_state(v1::SHARE_STATE_DELIVERED);
  EXPECT_EQ(Next(Kind::kDownstream), ShareStep::kOffer);
}

TEST_F(ShareStepTest, TargetOfThisRelayIsDeliveredOnceAndFollowedWhenItDetaches) {
  EXPECT_EQ(Next(Kind::kLocal, true), ShareStep::kMarkDelivered);
  EXPECT_EQ(Next(Kind::kLocal, false), ShareStep::kMarkDelivered);
  record_.share.set_state(v1::SHARE_STATE_DELIVERED);
  EXPECT_EQ(Next(Kind::kLocal, true), ShareStep::kWait);
  EXPECT_EQ(Next(Kind::kLocal, false), ShareStep::kSendIfElsewhere);
}

TEST_F(ShareStepTest, UnreachableTargetIsSoughtElsewhere) {
  EXPECT_EQ(Next(Kind::kUnreachable), ShareStep::kSendIfElsewhere);
}

TEST_F(ShareStepTest, UnknownTargetGoesToTheParent) {
  EXPECT_EQ(Next(Kind::kUnknown), ShareStep::kSend);
  record_.share.set_state(v1::SHARE_STATE_DELIVERED);
  EXPECT_EQ(Next(Kind::kUnknown), ShareStep::kSendIfElsewhere);
}

TEST_F(ShareStepTest, RootRefusesAnUnknownTargetOnceItIsSettled) {
  is_root_ = true;
  EXPECT_EQ(Next(Kind::kUnknown), ShareStep::kRefuse);
  settled_ = false;
  EXPECT_EQ(Next(Kind::kUnknown), ShareStep::kLookUpTarget);
  record_.share.set_state(v1::SHARE_STATE_DELIVERED);
  EXPECT_EQ(Next(Kind::kUnknown), ShareStep::kWait);
}

TEST_F(ShareStepTest, FileOfTheParentIsNotSentBackAfterACrash) {
  record_.from_parent = true;
  settled_ = false;
  EXPECT_EQ(Next(Kind::kUnknown), ShareStep::kWait);
  settled_ = true;
  EXPECT_EQ(Next(Kind::kUnknown), ShareStep::kMarkDelivered);
}

}  // namespace
}  // namespace muster
