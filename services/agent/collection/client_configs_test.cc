#include "services/agent/collection/client_configs.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

class ClientConfigsTest : public ::testing::Test {
 protected:
  ClientConfigsTest() { std::filesystem::create_directories(folder_); }
  ~ClientConfigsTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = ::testing::TempDir() + "/client-configs";
  ClientConfigs configs_{{.node = "n1",
                          .identity_folder = folder_,
                          .relay_targets = {"r1:1", "r2:1", "wss://r3:1"},
                          .state_folder = "/state"}};
};

TEST_F(ClientConfigsTest, NewestTargetIsFirstAndTunnelsFollowOnlyATunnel) {
  configs_.SetTarget("r2:1");
  EXPECT_THAT(configs_.ConfigOf({"r", "p"}, absl::InfiniteFuture()).grpc_targets,
              ElementsAre("r2:1", "r1:1"));
  configs_.SetTarget("wss://r3:1");
  EXPECT_THAT(configs_.ConfigOf({"r", "p"}, absl::InfiniteFuture()).status_targets,
              ElementsAre("wss://r3:1", "r1:1", "r2:1"));
}

TEST_F(ClientConfigsTest, CertificateIsReadEachTime) {
  EXPECT_EQ(configs_.ConfigOf({"r", "p"}, absl::InfiniteFuture()).client_cert, "");
  std::ofstream(folder_ + "/cert.pem") << "renewed";
  const client::Config config = configs_.ConfigOf({"r", "p"}, absl::FromUnixSeconds(7));
  EXPECT_EQ(config.client_cert, "renewed");
  EXPECT_EQ(config.run, "r");
  EXPECT_EQ(config.plugin, "p");
  EXPECT_EQ(config.node, "n1");
  EXPECT_EQ(config.state_dir, "/state");
}

}  // namespace
}  // namespace muster
