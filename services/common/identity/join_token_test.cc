#include "services/common/identity/join_token.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-0badcafe.muster";

JoinToken MakeToken() {
  JoinToken token;
  token.fleet = kFleet;
  token.id = "0123456789abcdef0123456789abcdef";
  token.node = "n1";
  token.expires = absl::FromUnixSeconds(1'800'000'000);
  token.join_targets = {"127.0.0.1:7443"};
  const absl::Time now = absl::FromUnixSeconds(1'790'000'000);
  token.fleet_ca_pem =
      FleetRoot::Create(kFleet, *PrivateKey::Generate(), now)->certificate().ToPem();
  token.command_ca_pem =
      FleetRoot::Create(kFleet, *PrivateKey::Generate(), now)->certificate().ToPem();
  token.private_key_pem = *PrivateKey::Generate()->ToPkcs8Pem();
  return token;
}

TEST(JoinTokenTest, WrittenFileIsReadAgain) {
  const JoinToken token = MakeToken();
  const auto read = ParseJoinToken(JoinTokenToJson(token).view());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->fleet, token.fleet);
  EXPECT_EQ(read->id, token.id);
  EXPECT_EQ(read->node, "n1");
  EXPECT_EQ(read->expires, token.expires);
  EXPECT_EQ(read->join_targets, token.join_targets);
  EXPECT_EQ(read->fleet_ca_pem, token.fleet_ca_pem);
  EXPECT_EQ(read->command_ca_pem, token.command_ca_pem);
  EXPECT_FALSE(read->relay);
  EXPECT_EQ(read->private_key_pem.view(), token.private_key_pem.view());
}

TEST(JoinTokenTest, TokenForRelayHasItsKind) {
  JoinToken token = MakeToken();
  token.relay = true;
  EXPECT_TRUE(ParseJoinToken(JoinTokenToJson(token).view())->relay);
}

TEST(JoinTokenTest, FileWithoutKindIsAccepted) {
  JoinToken token = MakeToken();
  token.command_ca_pem.clear();
  const std::string json = absl::StrReplaceAll(std::string(JoinTokenToJson(token).view()),
                                               {{"\"kind\": \"node\",", ""}});
  const auto read = ParseJoinToken(json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->relay);
  EXPECT_EQ(read->command_ca_pem, "");
}

TEST(JoinTokenTest, TokenForAnyNodeNamesNone) {
  JoinToken token = MakeToken();
  token.node.clear();
  const Secret json = JoinTokenToJson(token);
  EXPECT_NE(json.view().find("\"*\""), std::string_view::npos);
  EXPECT_EQ(ParseJoinToken(json.view())->node, "");
}

TEST(JoinTokenTest, InvalidTokenIsRefusedWithTheFault) {
  const std::string good(JoinTokenToJson(MakeToken()).view());
  const struct {
    std::string text;
    std::string why;
  } cases[] = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{}", "\"fleet\" is missing"},
      {absl::StrReplaceAll(good, {{"\"n1\"", "\"../x\""}}), "node"},
      {absl::StrReplaceAll(good, {{"0123456789abcdef0", "g123456789abcdef0"}}), "\"id\""},
      {absl::StrReplaceAll(good, {{"2027-", "soon-"}}), "\"expires_at\""},
      {absl::StrReplaceAll(good, {{"[\n    \"127.0.0.1:7443\"\n  ]", "[]"}}), "join_targets"},
      {absl::StrReplaceAll(good, {{"BEGIN CERTIFICATE", "BEGIN"}}), "fleet_ca_pem"},
      {absl::StrReplaceAll(good, {{"BEGIN PRIVATE KEY", "BEGIN"}}), "private_key_pem"},
      {absl::StrReplaceAll(good, {{"\"kind\": \"node\"", "\"kind\": \"tree\""}}), "\"kind\""},
      {absl::StrReplaceAll(good, {{"\"node\":", "\"more\": \"x\", \"node\":"}}), "\"more\""},
  };
  for (const auto& c : cases) {
    const auto token = ParseJoinToken(c.text);
    EXPECT_EQ(ReasonOf(token.status()), "INVALID_TOKEN_FILE") << c.why;
    EXPECT_NE(token.status().message().find(c.why), absl::string_view::npos) << token.status();
  }
}

TEST(JoinTokenTest, ProofCoversTokenNodeAndRequest) {
  EXPECT_EQ(JoinProofText("t", "n", ""),
            "muster-join-v1\nt\nn\n"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n");
  EXPECT_EQ(ReturnProofText(""),
            "muster-return-v1\n"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n");
}

TEST(PublicKeyTest, WrittenPemIsReadAgain) {
  const PublicKey key = PrivateKey::Generate()->public_key();
  const auto pem = key.ToPem();
  ASSERT_TRUE(pem.ok());
  EXPECT_EQ(*PublicKey::FromPem(*pem), key);
  EXPECT_EQ(key.Sha256()->size(), 32u);
  EXPECT_EQ(*PublicKey::FromPem(*pem)->Sha256(), *key.Sha256());
  EXPECT_EQ(ReasonOf(PublicKey::FromPem("nonsense").status()), "KEY_MALFORMED");
}

}  // namespace
}  // namespace muster
