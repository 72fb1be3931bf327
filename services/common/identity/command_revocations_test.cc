#include "services/common/identity/command_revocations.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/command_authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";
constexpr char kOperator[] = "spiffe://fleet-00112233.muster/user/o";
constexpr char kGateway[] = "spiffe://fleet-00112233.muster/service/gateway/g";

class CommandRevocationsTest : public ::testing::Test {
 protected:
  v1::CommandRevocations Signed() {
    v1::CommandRevocations list;
    list.set_version(3);
    list.add_revoked(kOperator);
    list.add_revoked(kGateway);
    EXPECT_TRUE(SignCommandRevocations(kFleet, authority_.key(), &list).ok());
    return list;
  }

  std::string Verify(const v1::CommandRevocations& list) {
    return ReasonOf(VerifyCommandRevocations(list, kFleet, authority_.certificate()));
  }

  const CommandAuthority authority_ =
      *CommandAuthority::Create(kFleet, *PrivateKey::Generate(), absl::Now());
};

TEST_F(CommandRevocationsTest, TextMatchesApi) {
  v1::CommandRevocations list;
  list.set_version(3);
  EXPECT_EQ(CommandRevocationsText(list, "f"), "muster-command-revocations-v1\nf\n3\n");
  list.add_revoked("a");
  list.add_revoked("b");
  EXPECT_EQ(CommandRevocationsText(list, "f"), "muster-command-revocations-v1\nf\n3\na\nb\n");
}

TEST_F(CommandRevocationsTest, SignedListIsAcceptedAndContainsItsSigners) {
  const v1::CommandRevocations list = Signed();
  EXPECT_TRUE(VerifyCommandRevocations(list, kFleet, authority_.certificate()).ok());
  EXPECT_TRUE(IsRevoked(list, {kFleet, UserIdentity{"o"}}));
  EXPECT_TRUE(IsRevoked(list, {kFleet, ServiceIdentity{ServiceRole::kGateway, "g"}}));
  EXPECT_FALSE(IsRevoked(list, {kFleet, UserIdentity{"p"}}));
}

TEST_F(CommandRevocationsTest, EmptyListIsAccepted) {
  v1::CommandRevocations list;
  list.set_version(1);
  ASSERT_TRUE(SignCommandRevocations(kFleet, authority_.key(), &list).ok());
  EXPECT_EQ(Verify(list), "");
}

TEST_F(CommandRevocationsTest, ChangedListIsRefused) {
  v1::CommandRevocations list = Signed();
  list.set_version(4);
  EXPECT_EQ(Verify(list), "REVOCATIONS_REFUSED");
  list = Signed();
  list.mutable_revoked()->RemoveLast();
  EXPECT_EQ(Verify(list), "REVOCATIONS_REFUSED");
  list = Signed();
  list.clear_signature();
  EXPECT_EQ(Verify(list), "REVOCATIONS_REFUSED");
}

TEST_F(CommandRevocationsTest, ListOfAnotherAuthorityIsRefused) {
  const CommandAuthority other =
      *CommandAuthority::Create(kFleet, *PrivateKey::Generate(), absl::Now());
  EXPECT_EQ(ReasonOf(VerifyCommandRevocations(Signed(), kFleet, other.certificate())),
            "REVOCATIONS_REFUSED");
}

TEST_F(CommandRevocationsTest, ListOfAnotherFleetIsRefused) {
  v1::CommandRevocations list;
  list.set_version(1);
  ASSERT_TRUE(SignCommandRevocations("another.muster", authority_.key(), &list).ok());
  EXPECT_EQ(Verify(list), "REVOCATIONS_REFUSED");
}

TEST_F(CommandRevocationsTest, InvalidListIsNeitherSignedNorAccepted) {
  const auto reason = [&](v1::CommandRevocations list) {
    EXPECT_EQ(Verify(list), "INVALID_REVOCATIONS");
    return ReasonOf(SignCommandRevocations(kFleet, authority_.key(), &list));
  };
  v1::CommandRevocations list;
  EXPECT_EQ(reason(list), "INVALID_REVOCATIONS") << "no version";
  list.set_version(1);
  list.add_revoked(absl::StrCat(kOperator, "\n", kGateway));
  EXPECT_EQ(reason(list), "INVALID_REVOCATIONS") << "a line within a name";
  list.set_revoked(0, "spiffe://fleet-00112233.muster/node/n");
  EXPECT_EQ(reason(list), "INVALID_REVOCATIONS") << "a node";
  list.clear_revoked();
  for (int i = 0; i <= kMaxCommandRevocations; ++i) list.add_revoked(absl::StrCat(kOperator, i));
  EXPECT_EQ(reason(list), "INVALID_REVOCATIONS") << "too many";
}

}  // namespace
}  // namespace muster
