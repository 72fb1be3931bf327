#include "services/aggregator/config.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(AggregatorConfigTest, PrintedConfigurationIsAccepted) {
  AggregatorConfig config;
  Config file("muster-aggregator");
  BindAggregatorConfig(&config, &file);
  config.state_folder = "/var/lib/muster";
  const absl::Status status = file.Parse(file.Print(), "aggregator.yaml");
  EXPECT_TRUE(status.ok()) << status;
}

TEST(AggregatorConfigTest, SizeOfAResultHasUnits) {
  AggregatorConfig config;
  Config file("muster-aggregator");
  BindAggregatorConfig(&config, &file);
  const absl::Status status =
      file.Parse("state_folder: /s\nlimits: {result_bytes: 2GiB}\n", "aggregator.yaml");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.uploads.max_result_bytes, uint64_t{2} << 30);
}

}  // namespace
}  // namespace muster
