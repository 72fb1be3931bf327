#include "services/common/service/operator_follower.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-01.muster";

class OperatorFollowerTest : public ::testing::Test {
 protected:
  void Begin() {
    v1::FollowChangesResponse event;
    event.mutable_snapshot_begin();
    follower_.HandleChange(event);
  }
  void End() {
    v1::FollowChangesResponse event;
    event.mutable_snapshot_end();
    follower_.HandleChange(event);
  }
  void Record(const std::string& name, absl::Duration expires = absl::Hours(1)) {
    v1::FollowChangesResponse event;
    event.mutable_operator_recorded()->set_uri("spiffe://fleet-01.muster/user/" + name);
    ToProto(clock_.Now() + expires, event.mutable_operator_recorded()->mutable_expires());
    follower_.HandleChange(event);
  }
  std::string Reason(const std::string& name) const {
    Caller caller{{kFleet, UserIdentity{name}}, std::nullopt, "", ""};
    caller.via = Identity{kFleet, ServiceIdentity{ServiceRole::kGateway, "g"}};
    return ReasonOf(operators_.Check(caller));
  }

  FakeClock clock_;
  RecordedOperators operators_{kFleet, clock_};
  OperatorFollower follower_{operators_};
};

TEST_F(OperatorFollowerTest, NoOperatorIsRefusedBeforeTheFirstSnapshotIsComplete) {
  Begin();
  Record("ann");
  EXPECT_EQ(Reason("eve"), "");
  End();
  EXPECT_EQ(Reason("eve"), "OPERATOR_NOT_RECORDED");
  EXPECT_EQ(Reason("ann"), "");
}

TEST_F(OperatorFollowerTest, LaterCertificatesAreRecorded) {
  Begin();
  Record("ann");
  End();
  Record("bob");
  Record("ann", absl::Hours(2));
  clock_.Advance(absl::Minutes(90));
  EXPECT_EQ(Reason("ann"), "");
  EXPECT_EQ(Reason("bob"), "OPERATOR_NOT_RECORDED");
}

TEST_F(OperatorFollowerTest, OperatorsStayRecordedWhileASnapshotArrives) {
  Begin();
  Record("ann");
  End();
  Begin();
  EXPECT_EQ(Reason("ann"), "");
  Record("bob");
  EXPECT_EQ(Reason("bob"), "OPERATOR_NOT_RECORDED");
  End();
  EXPECT_EQ(Reason("ann"), "OPERATOR_NOT_RECORDED");
  EXPECT_EQ(Reason("bob"), "");
}

}  // namespace
}  // namespace muster
