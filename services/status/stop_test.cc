// The stop of a status service that is being inspected.
#include <httplib.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "testing/fixtures/test_status.h"

namespace muster {
namespace {

// Race detectors see whether a gauge reads what the stop destroys.
TEST(StatusStopTest, MetricsAreReadWhileTheServiceStops) {
  testing::TestFleet fleet;
  testing::TestStatus status(fleet);
  status.Stop();
  status.config.addresses_file = status.config.state_folder + "/addresses.json";
  status.Start();
  std::ifstream file(status.config.addresses_file);
  httplib::Client client(
      absl::StrCat("http://", nlohmann::json::parse(file).at("inspection").get<std::string>()));
  std::atomic<int> read = 0;
  std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto metrics = client.Get("/metrics");
      if (!metrics) return;  // the inspection has ended
      EXPECT_NE(metrics->body.find("muster_feed_connected"), std::string::npos);
      ++read;
    }
  });
  while (read == 0) std::this_thread::yield();
  status.Stop();
}

}  // namespace
}  // namespace muster
