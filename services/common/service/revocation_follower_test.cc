#include "services/common/service/revocation_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RevocationFollowerTest : public ::testing::Test {
 protected:
  bool Begin() {
    v1::FollowChangesResponse change;
    change.mutable_snapshot_begin();
    return follower_.HandleChange(change);
  }
  bool End() {
    v1::FollowChangesResponse change;
    change.mutable_snapshot_end();
    return follower_.HandleChange(change);
  }
  bool Revoke(const std::string& subject) {
    v1::FollowChangesResponse change;
    change.mutable_revoked()->set_subject(subject);
    return follower_.HandleChange(change);
  }

  std::set<std::string> revoked_;
  RevocationFollower follower_{[this](std::set<std::string> all) { revoked_ = std::move(all); },
                               [this](const std::string& subject) { revoked_.insert(subject); }};
};

TEST_F(RevocationFollowerTest, SnapshotReplacesOnlyWhenItIsComplete) {
  revoked_ = {"old"};
  EXPECT_FALSE(Begin());
  EXPECT_FALSE(Revoke("a"));
  EXPECT_THAT(revoked_, ElementsAre("old"));
  EXPECT_TRUE(End());
  EXPECT_THAT(revoked_, ElementsAre("a"));
}

TEST_F(RevocationFollowerTest, SubjectAfterTheSnapshotIsAdded) {
  Begin();
  Revoke("a");
  End();
  EXPECT_TRUE(Revoke("b"));
  EXPECT_THAT(revoked_, ElementsAre("a", "b"));
}

TEST_F(RevocationFollowerTest, InterruptedSnapshotLeavesNothing) {
  Begin();
  Revoke("a");
  Begin();
  End();
  EXPECT_THAT(revoked_, IsEmpty());
}

TEST_F(RevocationFollowerTest, OtherChangeIsIgnored) { EXPECT_FALSE(follower_.HandleChange({})); }

}  // namespace
}  // namespace muster
