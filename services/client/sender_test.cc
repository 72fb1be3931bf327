#include "services/client/sender.h"

#include <filesystem>

#include "gtest/gtest.h"
#include "services/client/test_peer.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster::client {
namespace {

class SenderTest : public ::testing::Test {
 protected:
  SenderTest() {
    std::filesystem::remove_all(config_.identity_folder);
    std::filesystem::create_directories(config_.identity_folder);
  }

  void Write(const char* name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(config_.identity_folder + "/" + name, text).ok());
  }
  void Write(const std::pair<std::string, std::string>& credential) {
    Write("cert.pem", credential.first);
    Write("key.pem", credential.second);
    Write("ca.pem", fleet_.root_pem);
  }

  static Config InFolder() {
    Config config;
    config.identity_folder = ::testing::TempDir() + "/sender";
    return config;
  }

  const Config config_ = InFolder();
  const TestFleet fleet_ = TestFleet::Make();
};

TEST_F(SenderTest, SignatureUsesTheRenewedKey) {
  const auto first = fleet_.RunCredential("n1");
  const auto second = fleet_.RunCredential("n1");
  Write(first);
  const auto sender = Sender::Make(config_, absl::Now());
  ASSERT_TRUE(sender.ok()) << sender.status();
  EXPECT_EQ((*sender)->Identity()->chain_pem(), first.first);
  Write("cert.pem", second.first);  // half replaced: the key is that of another certificate
  EXPECT_EQ((*sender)->Identity()->chain_pem(), first.first);
  Write("key.pem", second.second);
  EXPECT_EQ((*sender)->Identity()->chain_pem(), second.first);
  EXPECT_EQ((*sender)->not_after(), absl::InfiniteFuture());
}

TEST_F(SenderTest, FixedIdentityExpires) {
  const Config config = fleet_.ConfigOf("n1");
  const auto sender = Sender::Make(config, absl::Now());
  ASSERT_TRUE(sender.ok()) << sender.status();
  EXPECT_LT((*sender)->not_after(), absl::Now() + absl::Hours(24));
  EXPECT_EQ((*sender)->Identity()->chain_pem(), config.client_cert);
}

TEST_F(SenderTest, FolderWithoutAnIdentityIsRefused) {
  EXPECT_EQ(ReasonOf(Sender::Make(config_, absl::Now()).status()), "INVALID_CONFIG");
}

}  // namespace
}  // namespace muster::client
