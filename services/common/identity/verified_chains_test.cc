#include "services/common/identity/verified_chains.h"

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

class VerifiedChainsTest : public ::testing::Test {
 protected:
  std::string ChainFor(const FleetName& name) const {
    const Certificate leaf =
        *intermediate_.Issue(name, key_.public_key(), {}, now_, now_ + absl::Hours(1));
    return ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()});
  }

  FakeClock clock_;
  const absl::Time now_ = clock_.Now();
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const PrivateKey intermediate_key_ = *PrivateKey::Generate();
  const Intermediate intermediate_ = *Intermediate::Load(
      kFleet, intermediate_key_, *root_.SignIntermediate(intermediate_key_.public_key(), now_),
      root_.certificate());
  const PrivateKey key_ = *PrivateKey::Generate();
  std::vector<Certificate> roots_ = {root_.certificate()};
  VerifiedChains chains_{[this] { return roots_; }, clock_};
};

TEST_F(VerifiedChainsTest, ContentOfTheFirstCertificateIsReturned) {
  const std::string pem = ChainFor(NodeIdentity{"n1"});
  const auto chain = chains_.Verify(pem);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const Certificate leaf = *Certificate::FromPem(pem);
  EXPECT_EQ((*chain)->uri, *leaf.Uri());
  EXPECT_EQ((*chain)->key, key_.public_key());
  EXPECT_EQ((*chain)->issuer, leaf.IssuerKeyId());
  EXPECT_EQ((*chain)->serial, leaf.Serial());
  EXPECT_EQ((*chain)->not_after, leaf.NotAfter());
  EXPECT_EQ((*chain)->expires, leaf.NotAfter());
}

TEST_F(VerifiedChainsTest, ChainIsVerifiedOnce) {
  const std::string pem = ChainFor(NodeIdentity{"n1"});
  const auto first = chains_.Verify(pem);
  const auto second = chains_.Verify(pem);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(chains_.size(), 1u);
}

TEST_F(VerifiedChainsTest, OneChainOfACertificateIsRemembered) {
  const std::string pem = ChainFor(NodeIdentity{"n1"});
  const auto other = chains_.Verify(ChainFor(NodeIdentity{"n2"}));
  ASSERT_TRUE(other.ok());
  const std::string unneeded =
      FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_)->certificate().ToPem();
  for (const std::string& text : {pem, "a comment\n" + pem, pem + "\n", pem + unneeded}) {
    const auto chain = chains_.Verify(text);
    ASSERT_TRUE(chain.ok()) << chain.status();
    EXPECT_EQ(*chains_.Verify(text), *chain) << "verified again";
  }
  EXPECT_EQ(chains_.size(), 2u);
}

TEST_F(VerifiedChainsTest, InvalidChainIsRefusedAndNotRemembered) {
  EXPECT_EQ(ReasonOf(chains_.Verify("nonsense").status()), "CERTIFICATE_MALFORMED");
  const Certificate leaf =
      *intermediate_.Issue(NodeIdentity{"n1"}, key_.public_key(), {}, now_, now_ + absl::Hours(1));
  EXPECT_EQ(ReasonOf(chains_.Verify(leaf.ToPem()).status()), "CERTIFICATE_UNTRUSTED");
  EXPECT_EQ(chains_.size(), 0u);
}

TEST_F(VerifiedChainsTest, RememberedChainEndsWithItsCertificate) {
  const std::string pem = ChainFor(NodeIdentity{"n1"});
  EXPECT_TRUE(chains_.Verify(pem).ok());
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(ReasonOf(chains_.Verify(pem).status()), "CERTIFICATE_EXPIRED");
}

TEST_F(VerifiedChainsTest, RememberedChainEndsWithItsRoot) {
  const std::string pem = ChainFor(NodeIdentity{"n1"});
  EXPECT_TRUE(chains_.Verify(pem).ok());
  roots_ = {FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_)->certificate()};
  EXPECT_EQ(ReasonOf(chains_.Verify(pem).status()), "CERTIFICATE_UNTRUSTED");
  EXPECT_EQ(chains_.size(), 0u);
}

}  // namespace
}  // namespace muster
