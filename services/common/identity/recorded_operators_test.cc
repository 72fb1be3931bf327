#include "services/common/identity/recorded_operators.h"

#include <optional>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-01.muster";

Caller Direct(Identity::Name name) { return {{kFleet, std::move(name)}, std::nullopt, "", ""}; }

Caller Forwarded(Identity::Name name) {
  Caller caller = Direct(std::move(name));
  caller.via = Identity{kFleet, ServiceIdentity{ServiceRole::kGateway, "g"}};
  return caller;
}

class RecordedOperatorsTest : public ::testing::Test {
 protected:
  void SetUp() override { operators_.Replace({}); }
  std::string Reason(const Caller& caller) const { return ReasonOf(operators_.Check(caller)); }

  FakeClock clock_;
  RecordedOperators operators_{kFleet, clock_};
};

TEST_F(RecordedOperatorsTest, GatewayForwardsOnlyOperatorsWithACertificate) {
  EXPECT_EQ(Reason(Forwarded(UserIdentity{"ann"})), "OPERATOR_NOT_RECORDED");
  operators_.Add("spiffe://fleet-01.muster/user/ann", clock_.Now() + absl::Hours(1));
  EXPECT_EQ(Reason(Forwarded(UserIdentity{"ann"})), "");
  EXPECT_EQ(Reason(Forwarded(UserIdentity{"ghost"})), "OPERATOR_NOT_RECORDED");
}

TEST_F(RecordedOperatorsTest, NoOperatorIsRefusedBeforeTheyAreKnown) {
  RecordedOperators unknown(kFleet, clock_);
  unknown.Add("spiffe://fleet-01.muster/user/ann", clock_.Now() + absl::Hours(1));
  EXPECT_EQ(unknown.Check(Forwarded(UserIdentity{"bob"})), absl::OkStatus());
}

TEST_F(RecordedOperatorsTest, ReplacedOperatorsAreRefused) {
  operators_.Add("spiffe://fleet-01.muster/user/ann", clock_.Now() + absl::Hours(1));
  operators_.Replace({{"spiffe://fleet-01.muster/user/bob", clock_.Now() + absl::Hours(1)}});
  EXPECT_EQ(Reason(Forwarded(UserIdentity{"ann"})), "OPERATOR_NOT_RECORDED");
  EXPECT_EQ(Reason(Forwarded(UserIdentity{"bob"})), "");
}

TEST_F(RecordedOperatorsTest, OtherCallersAreNotRestricted) {
  EXPECT_EQ(Reason(Direct(UserIdentity{"ann"})), "");
  EXPECT_EQ(Reason(Forwarded(NodeIdentity{"n1"})), "");
  EXPECT_EQ(Reason(Forwarded(RunViewerIdentity{"aaaaaaaaaaaaaaaa"})), "");
}

TEST_F(RecordedOperatorsTest, OperatorIsRefusedAfterItsLastCertificateHasExpired) {
  const absl::Time now = clock_.Now();
  operators_.Add("spiffe://fleet-01.muster/user/ann", now + absl::Hours(2));
  operators_.Add("spiffe://fleet-01.muster/user/ann", now + absl::Hours(1));
  clock_.Advance(absl::Minutes(119));
  EXPECT_EQ(Reason(Forwarded(UserIdentity{"ann"})), "");
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Reason(Forwarded(UserIdentity{"ann"})), "OPERATOR_NOT_RECORDED");
}

TEST_F(RecordedOperatorsTest, CertificateOfAnotherRoleRecordsNoOperator) {
  operators_.Add("spiffe://fleet-01.muster/node/ann", clock_.Now() + absl::Hours(1));
  operators_.Add("spiffe://other.muster/user/ann", clock_.Now() + absl::Hours(1));
  EXPECT_EQ(Reason(Forwarded(UserIdentity{"ann"})), "OPERATOR_NOT_RECORDED");
}

}  // namespace
}  // namespace muster
