#include "services/agent/docker/daemon_start.h"

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/agent/docker/testing/docker_fixture.h"

namespace muster {
namespace {

class DaemonStartTest : public testing::DockerTest {};

TEST_F(DaemonStartTest, IsThatOfThePresentProcess) {
  const auto first = DaemonStartOf(docker_->socket());
  ASSERT_TRUE(first.has_value());
  EXPECT_LT(*first, absl::Now());
  const absl::Time killed = absl::Now();
  docker_->Kill();
  EXPECT_EQ(DaemonStartOf(docker_->socket()), std::nullopt);
  docker_->Start();
  const auto second = DaemonStartOf(docker_->socket());
  ASSERT_TRUE(second.has_value());
  EXPECT_GT(*second, killed - absl::Milliseconds(20)) << "a tick of the kernel";
}

TEST_F(DaemonStartTest, IsUnknownWithoutASocket) {
  EXPECT_EQ(DaemonStartOf("/nonexistent/docker.sock"), std::nullopt);
  EXPECT_EQ(DaemonStartOf("/" + std::string(200, 'x')), std::nullopt);
}

}  // namespace
}  // namespace muster
