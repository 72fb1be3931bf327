#include "services/common/identity/identity.h"

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-01.muster";
constexpr char kRun[] = "00112233445566aa";

struct Good {
  std::string uri;
  Identity::Name name;
  Role role;
};

std::vector<Good> GoodOnes() {
  const std::string long_name(253, 'x');
  return {
      {"spiffe://fleet-01.muster/service/aggregator/main",
       ServiceIdentity{ServiceRole::kAggregator, "main"}, Role::kAggregator},
      {"spiffe://fleet-01.muster/service/status/s.1", ServiceIdentity{ServiceRole::kStatus, "s.1"},
       Role::kStatus},
      {"spiffe://fleet-01.muster/service/gateway/g", ServiceIdentity{ServiceRole::kGateway, "g"},
       Role::kGateway},
      {"spiffe://fleet-01.muster/service/relay/r", ServiceIdentity{ServiceRole::kRelay, "r"},
       Role::kRelay},
      {"spiffe://fleet-01.muster/user/Ann", UserIdentity{"Ann"}, Role::kOperator},
      {"spiffe://fleet-01.muster/node/n-1", NodeIdentity{"n-1"}, Role::kNode},
      {"spiffe://00112233445566aa.fleet-01.muster/plugin/p_1/node/" + long_name,
       RunNodeIdentity{kRun, "p_1", long_name}, Role::kRunNode},
      {"spiffe://00112233445566aa.fleet-01.muster/plugin/p/node/global",
       RunNodeIdentity{kRun, "p", "global"}, Role::kRunNode},
      {"spiffe://00112233445566aa.fleet-01.muster/plugin/p", RunPluginIdentity{kRun, "p"},
       Role::kRunPlugin},
      {"spiffe://00112233445566aa.fleet-01.muster/listener", RunListenerIdentity{kRun},
       Role::kRunListener},
  };
}

TEST(IdentityTest, EveryFormIsParsedAndFormatted) {
  for (const Good& good : GoodOnes()) {
    SCOPED_TRACE(good.uri);
    const auto parsed = ParseIdentity(good.uri, kFleet);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, (Identity{kFleet, good.name}));
    EXPECT_EQ(RoleOf(*parsed), good.role);
    const auto uri = ToUri(*parsed);
    ASSERT_TRUE(uri.ok()) << uri.status();
    EXPECT_EQ(*uri, good.uri);
  }
}

TEST(IdentityTest, OtherSpellingsAreRefused) {
  const std::string fleet = "spiffe://fleet-01.muster";
  const std::string run = "spiffe://00112233445566aa.fleet-01.muster";
  const std::vector<std::string> bad = {
      "",
      "spiffe://",
      fleet,
      fleet + "/",
      run,
      run + "/",
      "SPIFFE://fleet-01.muster/user/ann",
      "https://fleet-01.muster/user/ann",
      "spiffe:/fleet-01.muster/user/ann",
      fleet + "/User/ann",
      fleet + "/user/",
      fleet + "/user//ann",
      fleet + "//user/ann",
      fleet + "/user/ann/",
      fleet + "/user/ann/x",
      fleet + "/user/a%6en",
      fleet + "/user/ann?x=1",
      fleet + "/user/ann#x",
      fleet + "/user/.ann",
      fleet + "/user/..",
      fleet + "/user/a b",
      fleet + "/user/" + std::string(254, 'x'),
      fleet + std::string("/user/a\0b", 9),
      fleet + "/user/ann\n",
      fleet + "/user/\xc3\xa4",
      fleet + "/node/global",
      fleet + "/service/aggregator",
      fleet + "/service/Aggregator/x",
      fleet + "/service/operator/x",
      fleet + "/listener",
      fleet + "/plugin/p",
      fleet + "/plugin/p/node/n",
      run + "/user/ann",
      run + "/node/n",
      run + "/service/aggregator/x",
      run + "/listener/x",
      run + "/plugin",
      run + "/plugin/",
      run + "/plugin/p/node",
      run + "/plugin/p/node/",
      run + "/plugin/p/node/../node/n",
      run + "/plugin/p/Node/n",
      run + "/plugin/p/node/n/",
      run + "/plugin/p%2Fnode%2Fn",
  };
  for (const std::string& uri : bad) {
    const auto parsed = ParseIdentity(uri, kFleet);
    ASSERT_FALSE(parsed.ok()) << uri;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kPermissionDenied) << uri;
    EXPECT_EQ(ReasonOf(parsed.status()), "IDENTITY_MALFORMED") << uri;
  }
}

TEST(IdentityTest, AnotherTrustDomainIsForeign) {
  const std::vector<std::string> foreign = {
      "spiffe://fleet-02.muster/user/ann",
      "spiffe://FLEET-01.muster/user/ann",
      "spiffe://fleet-01.muster./user/ann",
      "spiffe://fleet-01.muster:443/user/ann",
      "spiffe://x@fleet-01.muster/user/ann",
      "spiffe://x.fleet-01.muster/user/ann",
      "spiffe:///user/ann",
      "spiffe://00112233445566AA.fleet-01.muster/listener",
      "spiffe://00112233445566a.fleet-01.muster/listener",
      "spiffe://00112233445566aaa.fleet-01.muster/listener",
      "spiffe://x.00112233445566aa.fleet-01.muster/listener",
      "spiffe://00112233445566aa.fleet-01.muster:1/listener",
      // OpenSSL's name constraint ends the host at the first colon; this parser does not.
      "spiffe://00112233445566aa.fleet-01.muster:x@fleet-01.muster/user/ann",
      "spiffe://00112233445566aa/listener",
      "spiffe://00112233445566aa.fleet-01.muster.evil/listener",
  };
  for (const std::string& uri : foreign) {
    const auto parsed = ParseIdentity(uri, kFleet);
    ASSERT_FALSE(parsed.ok()) << uri;
    EXPECT_EQ(ReasonOf(parsed.status()), "IDENTITY_FOREIGN") << uri;
  }
}

TEST(IdentityTest, ErrorQuotesUriBoundedAndPrintable) {
  const auto parsed = ParseIdentity("spiffe://x/\n" + std::string(1000, 'y'), kFleet);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.status().message().find('\n'), absl::string_view::npos);
  EXPECT_LT(parsed.status().message().size(), 400u);
}

TEST(IdentityTest, ToUriOfInvalidNameFails) {
  const std::vector<Identity> bad = {
      {kFleet, UserIdentity{""}},
      {kFleet, UserIdentity{"a/b"}},
      {kFleet, NodeIdentity{"global"}},
      {kFleet, RunListenerIdentity{"xyz"}},
      {kFleet, RunPluginIdentity{kRun, "p/node/n"}},
      {kFleet, RunNodeIdentity{"00112233445566AA", "p", "n"}},
      {"Fleet", UserIdentity{"ann"}},
      {"", UserIdentity{"ann"}},
  };
  for (const Identity& identity : bad) {
    EXPECT_EQ(ToUri(identity).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(IdentityTest, CheckFleetAcceptsOnlyTrustDomains) {
  for (const char* good : {"a", "fleet-0a1b2c3d.muster", "x.y.z", "1.2"}) {
    EXPECT_TRUE(CheckFleet(good).ok()) << good;
  }
  EXPECT_TRUE(CheckFleet(std::string(63, 'a')).ok());
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "A", "a_b", "-a", "a-", "a.-b", "a b", "a/b",
                          "a:1", "\xc3\xa4"}) {
    EXPECT_EQ(ReasonOf(CheckFleet(bad)), "INVALID_FLEET") << bad;
  }
  EXPECT_FALSE(CheckFleet(std::string(64, 'a')).ok());
  std::string longest = std::string(60, 'a');
  for (int i = 0; i < 2; ++i) longest += "." + std::string(60, 'b');
  longest += "." + std::string(53, 'c');
  ASSERT_EQ(longest.size(), 236u);
  EXPECT_TRUE(CheckFleet(longest).ok());
  EXPECT_FALSE(CheckFleet(longest + "c").ok());
}

TEST(IdentityTest, ParseOwnIdentityReturnsTheFleet) {
  for (const Good& good : GoodOnes()) {
    const auto parsed = ParseOwnIdentity(good.uri);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, (Identity{kFleet, good.name}));
  }
  for (const char* bad :
       {"", "spiffe://", "spiffe://x", "spiffe:///user/ann", "spiffe://f/listener",
        "spiffe://00112233445566aa/listener", "spiffe://00112233445566aa./plugin/p",
        "spiffe://00112233445566aaxfleet/listener", "spiffe://Fleet/user/ann"}) {
    EXPECT_FALSE(ParseOwnIdentity(bad).ok()) << bad;
  }
}

TEST(IdentityTest, OnlyRunIdentitiesHaveARun) {
  EXPECT_EQ(RunOf({kFleet, RunPluginIdentity{kRun, "p"}}), kRun);
  EXPECT_EQ(RunOf({kFleet, RunListenerIdentity{kRun}}), kRun);
  EXPECT_EQ(RunOf({kFleet, NodeIdentity{"n"}}), std::nullopt);
}

}  // namespace
}  // namespace muster
