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

}  // namespace
}  // namespace muster
