#include "services/aggregator/runs/authorities.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "services/aggregator/testing/test_state.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/signing_request.h"

namespace muster {
namespace {

using testing::kFleet;
using testing::TestState;

constexpr char kAnn[] = "spiffe://f.muster/user/ann";

class AuthoritiesTest : public ::testing::Test {
 protected:
  Intermediate NewIntermediate() {
    const PrivateKey key = *PrivateKey::Generate();
    return *Intermediate::Load(kFleet, key,
                               *state_.root().SignIntermediate(key.public_key(), clock_.Now()),
                               state_.root().certificate());
  }

  // Creates a run with its own CA.
  void Plan(const std::string& run) {
    CreateRun command = MakeRun(run, {{"facts", "n1"}});
    const auto authority =
        authorities_.NewRunAuthority(run, clock_.Now() + absl::Hours(1), absl::Minutes(2));
    ASSERT_TRUE(authority.ok()) << authority.status();
    command.authority = *authority;
    state_.Apply(std::move(command));
  }

  std::vector<IssuedRecord> Issued(const std::string& uri) {
    return *state_.store().NewestOfEach(uri);
  }

  TestState state_;
  FakeClock clock_{absl::Now()};  // certificates are issued at the present time
  const Intermediate intermediate_ = NewIntermediate();
  Authorities authorities_{intermediate_, *KeyWrap::OpenOrCreate(state_ / "store.key"),
                           state_.store(), clock_};
  const PrivateKey key_ = *PrivateKey::Generate();
  const std::string request_ = *CreateSigningRequest(key_);
  RunRecord run_{.id = kRun,
                 .deadline_at = absl::ToUnixMicros(clock_.Now() + absl::Hours(1)),
                 .seal_grace = absl::ToInt64Microseconds(absl::Minutes(2))};
};

TEST_F(AuthoritiesTest, CertificateOfARunIsSignedByItsCaAndRecorded) {
  Plan(kRun);
  const auto made =
      authorities_.SignForRun(RunNodeIdentity{kRun, "facts", "n1"}, run_, request_, {}, kAnn);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->uri, "spiffe://00112233445566aa.f.muster/plugin/facts/node/n1");
  const Certificate leaf = *Certificate::FromPem(made->leaf_pem);
  EXPECT_TRUE(leaf.Matches(key_));
  EXPECT_EQ(leaf.NotAfter(), made->expires);

  const std::vector<Certificate> above = *ParseChain(made->chain_pem);
  EXPECT_TRUE(
      VerifyChain(leaf, above, std::vector{authorities_.root()}, Usage::kClient, clock_.Now())
          .ok());
  const auto pinned = *Certificate::FromPem((*state_.store().GetAuthority(kRun))->self_signed_pem);
  EXPECT_TRUE(VerifyChain(leaf, {}, std::vector{pinned}, Usage::kClient, clock_.Now()).ok());

  const auto issued = Issued(made->uri);
  ASSERT_EQ(issued.size(), 1U);
  EXPECT_EQ(issued[0].serial, leaf.Serial());
  EXPECT_EQ(issued[0].issuer, leaf.IssuerKeyId());
  EXPECT_EQ(issued[0].issued_to, kAnn);
  EXPECT_EQ(issued[0].expires_at, absl::ToUnixMicros(made->expires));
}

TEST_F(AuthoritiesTest, CredentialsAndViewersHaveTheirValidity) {
  Plan(kRun);
  const absl::Time deadline = absl::FromUnixMicros(run_.deadline_at);
  const auto expires = [&](const RunName& name) {
    const auto made = authorities_.SignForRun(name, run_, request_, {}, kAnn);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? made->expires : absl::InfinitePast();
  };
  const auto whole_seconds = [](absl::Time time) {
    return absl::FromUnixSeconds(absl::ToUnixSeconds(time));
  };
  EXPECT_EQ(expires(RunNodeIdentity{kRun, "facts", "n1"}),
            whole_seconds(deadline + absl::Minutes(2) + absl::Hours(1)));
  EXPECT_EQ(expires(RunViewerIdentity{kRun}), whole_seconds(deadline + absl::Hours(24)));
}

TEST_F(AuthoritiesTest, EachRunHasItsOwnCa) {
  Plan(kRun);
  Plan("bbbbbbbbbbbbbbbb");
  const auto made =
      authorities_.SignForRun(RunNodeIdentity{kRun, "facts", "n1"}, run_, request_, {}, kAnn);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto other =
      *Certificate::FromPem((*state_.store().GetAuthority("bbbbbbbbbbbbbbbb"))->self_signed_pem);
  EXPECT_EQ(ReasonOf(VerifyChain(*Certificate::FromPem(made->leaf_pem), {}, std::vector{other},
                                 Usage::kClient, clock_.Now())),
            "CERTIFICATE_UNTRUSTED");
}

TEST_F(AuthoritiesTest, SignForRunWithoutCaFails) {
  const RunNodeIdentity name{kRun, "facts", "n1"};
  EXPECT_EQ(ReasonOf(authorities_.SignForRun(name, run_, request_, {}, kAnn).status()),
            "RUN_NOT_FOUND");
  Plan(kRun);
  state_.Apply(EndRun{.run = kRun, .at = 1});
  state_.Apply(WipeAuthority{kRun, 2});
  EXPECT_EQ(ReasonOf(authorities_.SignForRun(name, run_, request_, {}, kAnn).status()),
            "RUN_ENDED");
  EXPECT_TRUE(Issued("spiffe://").empty());
}

TEST_F(AuthoritiesTest, RequestSignedByAnotherKeyIsRefused) {
  Plan(kRun);
  std::string damaged = request_;
  damaged[damaged.size() / 2] = damaged[damaged.size() / 2] == 'A' ? 'B' : 'A';
  for (const std::string& request : {damaged, std::string("no request")}) {
    const auto made =
        authorities_.SignForRun(RunNodeIdentity{kRun, "facts", "n1"}, run_, request, {}, kAnn);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << made.status();
  }
  EXPECT_TRUE(Issued("spiffe://").empty());
}

TEST_F(AuthoritiesTest, CertificateOfTheFleetHasTheRequestedValidity) {
  const auto made =
      authorities_.SignForFleet(NodeIdentity{"n1"}, request_, {}, kNodeValidity, kAnn);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->uri, "spiffe://f.muster/node/n1");
  EXPECT_LE(made->expires, clock_.Now() + kNodeValidity);
  EXPECT_GT(made->expires, clock_.Now() + kNodeValidity - absl::Seconds(2));
  EXPECT_EQ(Issued(made->uri).size(), 1U);
}

TEST_F(AuthoritiesTest, RenewalsAreLimitedAndNotForRevokedCertificates) {
  const auto renew = [&](const std::string& name, const std::string& renewed) {
    return authorities_
        .SignForFleet(UserIdentity{name}, request_, {}, kOperatorValidity, kAnn, renewed)
        .status();
  };
  for (int i = 0; i < kMaxRenewals; ++i) ASSERT_TRUE(renew("ann", "aa:01").ok());
  EXPECT_EQ(ReasonOf(renew("ann", "aa:01")), "RENEWAL_LIMIT");
  state_.Apply(Revoke{{.subject = "aa:02"}});
  EXPECT_EQ(ReasonOf(renew("bob", "aa:02")), "CERTIFICATE_REVOKED");
  EXPECT_TRUE(renew("bob", "aa:03").ok());
}

TEST_F(AuthoritiesTest, FirstOperatorIsRecordedOnce) {
  const std::string file = state_ / "operator.pem";
  EXPECT_TRUE(authorities_.ImportOperator(file).ok());  // the file does not exist
  const auto leaf = intermediate_.Issue(UserIdentity{"admin"}, key_.public_key(), {}, clock_.Now(),
                                        clock_.Now() + absl::Hours(1));
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  ASSERT_TRUE(WriteFileAtomically(file, leaf->ToPem()).ok());
  EXPECT_TRUE(authorities_.ImportOperator(file).ok());
  EXPECT_TRUE(authorities_.ImportOperator(file).ok());  // at the next start
  const auto issued = Issued("spiffe://f.muster/user/admin");
  ASSERT_EQ(issued.size(), 1U);
  EXPECT_EQ(issued[0].serial, leaf->Serial());

  // The operator was revoked, and the record of its certificate is removed long after its expiry.
  clock_.Advance(absl::Hours(2) + absl::Microseconds(kIssuedKept));
  state_.Apply(Revoke{{.subject = "spiffe://f.muster/user/admin"}});
  ASSERT_TRUE(
      authorities_.SignForFleet(UserIdentity{"ann"}, request_, {}, absl::Hours(1), kAnn).ok());
  ASSERT_TRUE(Issued("spiffe://f.muster/user/admin").empty());
  EXPECT_EQ(authorities_.ImportOperator(file), absl::OkStatus());
  EXPECT_TRUE(Issued("spiffe://f.muster/user/admin").empty());

  ASSERT_TRUE(WriteFileAtomically(file, "no certificate").ok());
  const absl::Status damaged = authorities_.ImportOperator(file);
  EXPECT_NE(damaged.message().find(file), absl::string_view::npos) << damaged;
}

}  // namespace
}  // namespace muster
