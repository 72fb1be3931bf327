#include "services/common/identity/authority.h"

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/certificate_builder.h"
#include "services/common/identity/tls_handshake.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-01.muster";
constexpr char kRunA[] = "aaaaaaaaaaaaaaaa";
constexpr char kRunB[] = "bbbbbbbbbbbbbbbb";
const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const absl::Time kRunEnd = kNow + absl::Hours(3);

// A fleet with two runs and an aggregator, and their chains.
class AuthorityTest : public ::testing::Test {
 protected:
  AuthorityTest()
      : root_(*FleetRoot::Create(kFleet, NewKey(), kNow)),
        intermediate_(NewIntermediate()),
        run_a_(*intermediate_.CreateRunAuthority(kRunA, kNow, kRunEnd)),
        run_b_(*intermediate_.CreateRunAuthority(kRunB, kNow, kRunEnd)) {}

  static PrivateKey NewKey() { return *PrivateKey::Generate(); }

  Intermediate NewIntermediate() {
    const PrivateKey key = NewKey();
    return *Intermediate::Load(kFleet, key, *root_.SignIntermediate(key.public_key(), kNow),
                               root_.certificate());
  }

  // Connects to the aggregator as a sidecar with new software does.
  TlsEnd RunClient(const RunAuthority& run, const RunName& name) {
    return Client(run, *run.Issue(name, key_.public_key(), {}, kNow));
  }
  TlsEnd Client(const RunAuthority& run, Certificate leaf) {
    return {{std::move(leaf), run.fleet_signed(), intermediate_.certificate()},
            key_,
            {root_.certificate()},
            ""};
  }
  TlsEnd FleetEnd(const FleetName& name) {
    return {{*intermediate_.Issue(name, key_.public_key(), {}, kNow, kNow + absl::Hours(24)),
             intermediate_.certificate()},
            key_,
            {root_.certificate()},
            ""};
  }
  TlsEnd Aggregator() { return FleetEnd(ServiceIdentity{ServiceRole::kAggregator, "main"}); }

  // Signs a certificate with the stolen key of run A.
  Certificate Forge(std::string uri, Usage usage = Usage::kClient) {
    CertificateSpec spec = LeafSpec(std::move(uri));
    spec.usage = usage;
    return *BuildCertificate(spec, key_.public_key(), &run_a_.fleet_signed(), run_a_.key());
  }
  static CertificateSpec LeafSpec(std::string uri) {
    CertificateSpec spec;
    spec.common_name = "forged";
    spec.uri = std::move(uri);
    spec.usage = Usage::kClient;
    spec.not_before = kNow - absl::Hours(1);
    spec.not_after = kNow + absl::Hours(1);
    return spec;
  }

  absl::Status VerifyRunLeaf(const Certificate& leaf, Usage usage = Usage::kClient,
                             absl::Time now = kNow) {
    const std::vector<Certificate> above = {run_a_.fleet_signed(), intermediate_.certificate()};
    return VerifyChain(leaf, above, std::vector{root_.certificate()}, usage, now);
  }

  FleetRoot root_;
  Intermediate intermediate_;
  RunAuthority run_a_;
  RunAuthority run_b_;
  const PrivateKey key_ = NewKey();
};

TEST_F(AuthorityTest, EveryKindOfLeafChainsToTheRoot) {
  const TlsEnd aggregator = Aggregator();
  for (const TlsEnd& client : {FleetEnd(UserIdentity{"ann"}), FleetEnd(NodeIdentity{"n1"}),
                               FleetEnd(ServiceIdentity{ServiceRole::kGateway, "g"}),
                               RunClient(run_a_, RunNodeIdentity{kRunA, "p", "n1"}),
                               RunClient(run_a_, RunPluginIdentity{kRunA, "p"})}) {
    const HandshakeOutcome outcome = Handshake(aggregator, client, kNow);
    EXPECT_TRUE(outcome.ok) << outcome.server_refused << outcome.client_refused;
    const auto identity = ParseIdentity(*client.chain.front().Uri(), kFleet);
    EXPECT_TRUE(identity.ok()) << identity.status();
  }
}

TEST_F(AuthorityTest, LegacyClientNeedsOnlyTheSelfSignedRunCa) {
  const PrivateKey server_key = NewKey();
  const Certificate server = *run_a_.Issue(RunListenerIdentity{kRunA}, server_key.public_key(),
                                           {"localhost", "10.0.0.7", "::1"}, kNow);
  EXPECT_EQ(server.Hosts(), (std::vector<std::string>{"localhost", "10.0.0.7", "::1"}));
  const Certificate leaf =
      *run_a_.Issue(RunNodeIdentity{kRunA, "p", "n1"}, key_.public_key(), {}, kNow);
  const TlsEnd listener{{server}, server_key, {run_a_.self_signed()}, ""};
  for (const char* host : {"localhost", "10.0.0.7", "::1"}) {
    const HandshakeOutcome outcome =
        Handshake(listener, {{leaf}, key_, {run_a_.self_signed()}, host}, kNow);
    EXPECT_TRUE(outcome.ok) << outcome.server_refused << outcome.client_refused;
  }
  EXPECT_NE(
      Handshake(listener, {{leaf}, key_, {run_a_.self_signed()}, "elsewhere"}, kNow).client_refused,
      "");
  // The same credential works with its issuers in the file.
  EXPECT_TRUE(Handshake(listener,
                        {{leaf, run_a_.fleet_signed(), intermediate_.certificate()},
                         key_,
                         {run_a_.self_signed()},
                         "localhost"},
                        kNow)
                  .ok);
}

TEST_F(AuthorityTest, LeafOfAnotherRunIsRefusedByTheListener) {
  const PrivateKey server_key = NewKey();
  const TlsEnd listener_b{
      {*run_b_.Issue(RunListenerIdentity{kRunB}, server_key.public_key(), {"localhost"}, kNow)},
      server_key,
      {run_b_.self_signed()},
      ""};
  TlsEnd client = RunClient(run_a_, RunNodeIdentity{kRunA, "p", "n1"});
  client.roots = {run_b_.self_signed()};
  const HandshakeOutcome outcome = Handshake(listener_b, client, kNow);
  EXPECT_FALSE(outcome.ok);
  EXPECT_NE(outcome.server_refused, "");

  // A client of run A does not trust the listener of run B.
  client.roots = {run_a_.self_signed()};
  EXPECT_NE(Handshake(listener_b, client, kNow).client_refused, "");
}

TEST_F(AuthorityTest, RunCaCannotSignForOtherRuns) {
  const TlsEnd aggregator = Aggregator();
  const std::string run_b = "spiffe://bbbbbbbbbbbbbbbb.fleet-01.muster/plugin/p/node/n1";
  for (const std::string& uri : {
           run_b,
           std::string("spiffe://fleet-01.muster/user/ann"),
           std::string("spiffe://fleet-01.muster/service/aggregator/main"),
           std::string("spiffe://fleet-01.muster/node/n1"),
           std::string("spiffe://x.aaaaaaaaaaaaaaaa.fleet-01.muster/plugin/p"),
           std::string("spiffe://aaaaaaaaaaaaaaaa/plugin/p"),
           std::string("spiffe://aaaaaaaaaaaaaaaa.fleet-01.muster.evil/plugin/p"),
       }) {
    SCOPED_TRACE(uri);
    const Certificate forged = Forge(uri);
    EXPECT_EQ(ReasonOf(VerifyRunLeaf(forged)), "CERTIFICATE_UNTRUSTED");
    const HandshakeOutcome outcome = Handshake(aggregator, Client(run_a_, forged), kNow);
    EXPECT_FALSE(outcome.ok);
    EXPECT_EQ(outcome.server_refused, "permitted subtree violation");
  }
  // It can sign certificates of run A.
  EXPECT_TRUE(VerifyRunLeaf(Forge("spiffe://aaaaaaaaaaaaaaaa.fleet-01.muster/plugin/p")).ok());
}

TEST_F(AuthorityTest, ParserRefusesWhatTheConstraintAdmits) {
  for (const char* uri : {"spiffe://aaaaaaaaaaaaaaaa.fleet-01.muster:x@fleet-01.muster/user/ann",
                          "spiffe://AAAAAAAAAAAAAAAA.fleet-01.muster/plugin/p",
                          "spiffe://aaaaaaaaaaaaaaaa.fleet-01.muster/user/ann",
                          "https://aaaaaaaaaaaaaaaa.fleet-01.muster/plugin/p"}) {
    SCOPED_TRACE(uri);
    const Certificate forged = Forge(uri);
    ASSERT_TRUE(VerifyRunLeaf(forged).ok());
    EXPECT_FALSE(ParseIdentity(*forged.Uri(), kFleet).ok());
  }
}

TEST_F(AuthorityTest, RunCaCannotSignCas) {
  CertificateSpec spec;
  spec.common_name = "Muster run below";
  spec.uri = "spiffe://aaaaaaaaaaaaaaaa.fleet-01.muster";
  spec.not_before = kNow - absl::Hours(1);
  spec.not_after = kNow + absl::Hours(1);
  const PrivateKey below_key = NewKey();
  const Certificate below =
      *BuildCertificate(spec, below_key.public_key(), &run_a_.fleet_signed(), run_a_.key());
  const Certificate leaf =
      *BuildCertificate(LeafSpec("spiffe://aaaaaaaaaaaaaaaa.fleet-01.muster/plugin/p"),
                        key_.public_key(), &below, below_key);
  const std::vector<Certificate> above = {below, run_a_.fleet_signed(),
                                          intermediate_.certificate()};
  const absl::Status status =
      VerifyChain(leaf, above, std::vector{root_.certificate()}, Usage::kClient, kNow);
  EXPECT_EQ(ReasonOf(status), "CERTIFICATE_UNTRUSTED");
  EXPECT_NE(status.message().find("path length"), absl::string_view::npos) << status;
}

TEST_F(AuthorityTest, IntermediateCannotSignIntermediates) {
  const PrivateKey fake_key = NewKey();
  const FleetRoot fake_root = *FleetRoot::Create(kFleet, NewKey(), kNow);
  const auto fake = fake_root.SignIntermediate(fake_key.public_key(), kNow);
  // Signed by another root of the same name.
  EXPECT_EQ(ReasonOf(Intermediate::Load(kFleet, fake_key, *fake, root_.certificate()).status()),
            "AUTHORITY_MISMATCH");
}

TEST_F(AuthorityTest, TimeAndUsageAreChecked) {
  const Certificate leaf =
      *run_a_.Issue(RunNodeIdentity{kRunA, "p", "n1"}, key_.public_key(), {}, kNow);
  EXPECT_EQ(leaf.NotBefore(), kNow - kBackdate);
  EXPECT_EQ(leaf.NotAfter(), kRunEnd);
  EXPECT_TRUE(VerifyRunLeaf(leaf, Usage::kClient, kNow - absl::Minutes(59)).ok());
  EXPECT_EQ(ReasonOf(VerifyRunLeaf(leaf, Usage::kClient, kNow - absl::Minutes(61))),
            "CERTIFICATE_NOT_YET_VALID");
  EXPECT_TRUE(VerifyRunLeaf(leaf, Usage::kClient, kRunEnd - absl::Seconds(1)).ok());
  EXPECT_EQ(ReasonOf(VerifyRunLeaf(leaf, Usage::kClient, kRunEnd + absl::Seconds(1))),
            "CERTIFICATE_EXPIRED");
  EXPECT_EQ(ReasonOf(VerifyRunLeaf(leaf, Usage::kServer)), "CERTIFICATE_WRONG_USAGE");

  const Certificate listener =
      *run_a_.Issue(RunListenerIdentity{kRunA}, key_.public_key(), {"localhost"}, kNow);
  EXPECT_TRUE(VerifyRunLeaf(listener, Usage::kServer).ok());
  EXPECT_EQ(ReasonOf(VerifyRunLeaf(listener)), "CERTIFICATE_WRONG_USAGE");

  const TlsEnd aggregator = Aggregator();
  EXPECT_EQ(Handshake(aggregator, Client(run_a_, listener), kNow).server_refused,
            "unsuitable certificate purpose");
  EXPECT_EQ(Handshake(aggregator, Client(run_a_, leaf), kRunEnd + absl::Seconds(1)).ok, false);
  EXPECT_TRUE(VerifyChain(aggregator.chain[0], std::vector{intermediate_.certificate()},
                          std::vector{root_.certificate()}, Usage::kClientAndServer, kNow)
                  .ok());
}

TEST_F(AuthorityTest, CaCertificatesHaveNoIdentity) {
  for (const Certificate& authority : {root_.certificate(), intermediate_.certificate(),
                                       run_a_.fleet_signed(), run_a_.self_signed()}) {
    EXPECT_FALSE(ParseIdentity(*authority.Uri(), kFleet).ok());
  }
}

TEST_F(AuthorityTest, BothCertificatesOfARunBuildTheSameChains) {
  const Certificate leaf =
      *run_a_.Issue(RunPluginIdentity{kRunA, "p"}, key_.public_key(), {}, kNow);
  EXPECT_TRUE(VerifyRunLeaf(leaf).ok());
  EXPECT_TRUE(VerifyChain(leaf, {}, std::vector{run_a_.self_signed()}, Usage::kClient, kNow).ok());
}

TEST_F(AuthorityTest, IssueForForeignNamesFails) {
  const auto issue = [&](const RunName& name, std::vector<std::string> hosts) {
    return ReasonOf(run_a_.Issue(name, key_.public_key(), hosts, kNow).status());
  };
  EXPECT_EQ(issue(RunNodeIdentity{kRunB, "p", "n"}, {}), "ISSUER_MAY_NOT_SIGN");
  EXPECT_EQ(issue(RunListenerIdentity{kRunB}, {}), "ISSUER_MAY_NOT_SIGN");
  EXPECT_EQ(issue(RunNodeIdentity{kRunA, "p", "n"}, {"localhost"}), "ISSUER_MAY_NOT_SIGN");
  EXPECT_EQ(issue(RunNodeIdentity{kRunA, "p/node/n", "n"}, {}), "INVALID_NAME");
  EXPECT_EQ(issue(RunListenerIdentity{kRunA}, {"not a host"}), "INVALID_HOST");
  EXPECT_EQ(ReasonOf(intermediate_
                         .Issue(UserIdentity{"ann"}, key_.public_key(), {"localhost"}, kNow,
                                kNow + absl::Hours(1))
                         .status()),
            "ISSUER_MAY_NOT_SIGN");
}

TEST_F(AuthorityTest, CertificatesExpireNoLaterThanTheirIssuer) {
  const absl::Time end = intermediate_.certificate().NotAfter();
  const auto leaf =
      intermediate_.Issue(NodeIdentity{"n"}, key_.public_key(), {}, kNow, end + absl::Hours(1));
  EXPECT_EQ(leaf->NotAfter(), end);
  EXPECT_EQ(ReasonOf(intermediate_.CreateRunAuthority(kRunA, kNow, end + absl::Hours(1)).status()),
            "AUTHORITY_ENDS_EARLIER");
  EXPECT_EQ(ReasonOf(intermediate_.CreateRunAuthority("run", kNow, kRunEnd).status()),
            "INVALID_NAME");
}

TEST_F(AuthorityTest, CredentialsExpireAfterTheLastResult) {
  EXPECT_EQ(RunCredentialsEnd(kNow, absl::Seconds(120)),
            kNow + absl::Seconds(120) + absl::Hours(1));
}

TEST_F(AuthorityTest, ViewersExpireADayAfterTheDeadline) {
  EXPECT_EQ(RunViewersEnd(kNow), kNow + absl::Hours(24));
  EXPECT_EQ(RunAuthorityEnd(kNow, absl::Seconds(120)), kNow + absl::Hours(24));
  EXPECT_EQ(RunAuthorityEnd(kNow, absl::Hours(48)), kNow + absl::Hours(49));
  const auto end = kNow + absl::Minutes(5);
  const auto leaf =
      run_a_.Issue(RunNodeIdentity{kRunA, "p", "n1"}, key_.public_key(), {}, kNow, end);
  ASSERT_TRUE(leaf.ok()) << leaf.status();
  EXPECT_EQ(leaf->NotAfter(), end);
}

TEST_F(AuthorityTest, LoadOfMismatchedPartsFails) {
  const auto load = [&](std::string_view run, const PrivateKey& key, const Certificate& a,
                        const Certificate& b) {
    return ReasonOf(RunAuthority::Load(kFleet, run, key, a, b).status());
  };
  EXPECT_EQ(load(kRunA, run_a_.key(), run_a_.fleet_signed(), run_a_.self_signed()), "");
  EXPECT_EQ(load(kRunB, run_a_.key(), run_a_.fleet_signed(), run_a_.self_signed()),
            "AUTHORITY_MISMATCH");
  EXPECT_EQ(load(kRunA, run_b_.key(), run_a_.fleet_signed(), run_a_.self_signed()),
            "AUTHORITY_MISMATCH");
  EXPECT_EQ(load(kRunA, run_a_.key(), run_a_.fleet_signed(), run_b_.self_signed()),
            "AUTHORITY_MISMATCH");
  EXPECT_EQ(ReasonOf(FleetRoot::Load("other", key_, root_.certificate()).status()),
            "AUTHORITY_MISMATCH");
  EXPECT_EQ(ReasonOf(FleetRoot::Create("Not A Fleet", key_, kNow).status()), "INVALID_FLEET");
}

TEST_F(AuthorityTest, LongNamesFitIntoCertificates) {
  const std::string name(253, 'n');
  const TlsEnd client = RunClient(run_a_, RunNodeIdentity{kRunA, name, name});
  EXPECT_TRUE(Handshake(Aggregator(), client, kNow).ok);
}

}  // namespace
}  // namespace muster
