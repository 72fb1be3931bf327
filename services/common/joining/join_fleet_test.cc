// A real aggregator with its join listener.
#include "services/common/joining/join_fleet.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/enrollment.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/certificate.h"
#include "services/common/joining/testing/fake_join_relay.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

class JoinFleetTest : public ::testing::Test {
 protected:
  JoinFleetTest() : folder_(absl::StrCat(::testing::TempDir(), "/join-", ::getpid())) {
    std::filesystem::remove_all(folder_);
  }
  ~JoinFleetTest() override { std::filesystem::remove_all(folder_); }

  JoinToken Token(const std::string& node) {
    const PrivateKey key = *PrivateKey::Generate();
    v1::CreateJoinTokenRequest request;
    request.set_id(absl::StrCat("0123456789abcdef01234567", 10'000'000 + tokens_++));
    request.set_public_key_pem(*key.public_key().ToPem());
    request.set_node(node);
    v1::CreateJoinTokenResponse response;
    grpc::ClientContext context;
    const auto stub = v1::EnrollmentService::NewStub(fleet_.Connect(fleet_.admin()));
    EXPECT_TRUE(stub->CreateJoinToken(&context, request, &response).ok());
    JoinToken token;
    token.fleet = fleet_.name();
    token.id = request.id();
    token.node = node;
    token.expires = absl::Now() + absl::Minutes(15);
    token.join_targets = {absl::StrCat("127.0.0.1:", fleet_.join_port())};
    token.fleet_ca_pem = response.fleet_ca_pem();
    token.private_key_pem = *key.ToPkcs8Pem();
    return token;
  }

  std::string Read(const std::string& file) {
    return ReadFileBounded(absl::StrCat(folder_, "/", file), 1 << 20).value_or("");
  }

  testing::TestFleet fleet_;
  const std::string folder_;
  int tokens_ = 0;
};

TEST_F(JoinFleetTest, JoinWritesTheIdentityToTheFolder) {
  const auto joined = JoinFleet(Token("n1"), "n1", folder_);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->name, "n1");
  const auto leaf = Certificate::FromPem(Read("tls/cert.pem"));
  ASSERT_TRUE(leaf.ok());
  EXPECT_TRUE(leaf->Matches(*PrivateKey::FromPem(Read("tls/key.pem"))));
  EXPECT_EQ(leaf->NotAfter(), joined->certificate_ends);
  EXPECT_EQ(Read("tls/ca.pem"), fleet_.fleet_ca_pem());
  EXPECT_NE(Read("node.json").find("\"node\": \"n1\""), std::string::npos);
  struct stat key = {};
  ASSERT_EQ(::stat((folder_ + "/tls/key.pem").c_str(), &key), 0);
  EXPECT_EQ(key.st_mode & 0777, 0600u);
  EXPECT_EQ(ReasonOf(JoinFleet(Token("n1"), "n1", folder_).status()), "ALREADY_JOINED");
}

TEST_F(JoinFleetTest, LostResponseIsRequestedAgainWithTheSameKey) {
  const JoinToken token = Token("n1");
  ASSERT_TRUE(JoinFleet(token, "n1", folder_).ok());
  const std::string certificate = Read("tls/cert.pem");
  // As if the process had ended before the response arrived.
  std::filesystem::remove(folder_ + "/tls/cert.pem");
  ASSERT_TRUE(JoinFleet(token, "n1", folder_).ok());
  EXPECT_EQ(Read("tls/cert.pem"), certificate);
}

TEST_F(JoinFleetTest, NextAddressIsTriedIfOneIsUnreachable) {
  JoinToken token = Token("n1");
  token.join_targets.insert(token.join_targets.begin(), "127.0.0.1:1");
  EXPECT_TRUE(JoinFleet(token, "n1", folder_).ok());
}

TEST_F(JoinFleetTest, NextAddressIsTriedIfARelayIsRevoked) {
  const testing::FakeJoinRelay relay(fleet_, testing::RefusalOfTheRelay());
  JoinToken token = Token("n1");
  token.join_targets.insert(token.join_targets.begin(), relay.target());
  const auto joined = JoinFleet(token, "n1", folder_);
  EXPECT_TRUE(joined.ok()) << joined.status();
}

TEST_F(JoinFleetTest, NextAddressIsTriedIfTheFirstAnswersWithACertificateForAnotherKey) {
  const testing::FakeJoinRelay relay(fleet_, testing::CertificateForAnotherKey(fleet_, "n1"));
  JoinToken token = Token("n1");
  token.join_targets.insert(token.join_targets.begin(), relay.target());
  const auto joined = JoinFleet(token, "n1", folder_);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_TRUE(Certificate::FromPem(Read("tls/cert.pem"))
                  ->Matches(*PrivateKey::FromPem(Read("tls/key.pem"))));
}

TEST_F(JoinFleetTest, OnlyAnswerWithACertificateForAnotherKeyFails) {
  const testing::FakeJoinRelay relay(fleet_, testing::CertificateForAnotherKey(fleet_, "n1"));
  JoinToken token = Token("n1");
  token.join_targets = {relay.target()};
  EXPECT_EQ(ReasonOf(JoinFleet(token, "n1", folder_).status()), "JOIN_ANSWER_UNUSABLE");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/tls/cert.pem"));
}

TEST_F(JoinFleetTest, ServerOfAnotherFleetIsNotTrusted) {
  JoinToken token = Token("n1");
  const testing::TestFleet other;
  token.join_targets = {absl::StrCat("127.0.0.1:", other.join_port())};
  EXPECT_EQ(JoinFleet(token, "n1", folder_).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/tls/cert.pem"));
}

TEST_F(JoinFleetTest, RefusedJoinLeavesNoCertificate) {
  EXPECT_EQ(ReasonOf(JoinFleet(Token("n1"), "n2", folder_).status()), "TOKEN_OF_OTHER_NODE");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/tls/cert.pem"));
}

}  // namespace
}  // namespace muster
