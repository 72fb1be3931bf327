#include "services/relay/config.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(RelayConfigTest, SizesMayHaveUnits) {
  RelayConfig config;
  Config file("muster-relay");
  BindRelayConfig(&config, &file);
  const absl::Status status = file.Parse(
      "jobs: {max_output: 2MiB}\n"
      "shares: {quota: 20GiB, max_size: 1048576}\n"
      "spool: {max_bytes: 1GiB}\n",
      "relay.yaml");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.jobs.max_output, uint64_t{2} << 20);
  EXPECT_EQ(config.shares.quota, uint64_t{20} << 30);
  EXPECT_EQ(config.shares.max_size, uint64_t{1} << 20);
  EXPECT_EQ(config.forwarding.spool_bytes, uint64_t{1} << 30);
}

}  // namespace
}  // namespace muster
