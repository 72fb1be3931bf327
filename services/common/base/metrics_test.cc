#include "services/common/base/metrics.h"

#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, PrintsCountersGaugesAndHistograms) {
  Metrics metrics;
  const Counter uploads = metrics.AddCounter("muster_uploads_total", "Uploads committed.");
  uploads.Add();
  uploads.Add(2);
  const Gauge open = metrics.AddGauge("muster_uploads_open", "Uploads under way.");
  open.Set(5);
  open.Add(-1);
  const Histogram size = metrics.AddHistogram("muster_upload_bytes", "Sizes.", {10, 100});
  size.Observe(50);
  EXPECT_EQ(uploads.value(), 3);
  EXPECT_EQ(open.value(), 4);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("# HELP muster_uploads_total Uploads committed.\n"
                              "# TYPE muster_uploads_total counter\nmuster_uploads_total 3\n"));
  EXPECT_THAT(text, HasSubstr("\nmuster_uploads_open 4\n"));
  EXPECT_THAT(text, HasSubstr("muster_upload_bytes_bucket{le=\"10\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("muster_upload_bytes_bucket{le=\"100\"} 1\n"));
}

TEST(MetricsTest, LabelsTellSeriesApart) {
  Metrics metrics;
  const auto calls = metrics.AddCounters("muster_calls_total", "Calls.", {"method", "code"}, 10);
  calls.With({"Get", "OK"}).Add();
  calls.With({"Get", "OK"}).Add();
  calls.With({"Get", "NOT_FOUND"}).Add();
  EXPECT_THAT(metrics.Text(), HasSubstr("muster_calls_total{code=\"OK\",method=\"Get\"} 2\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("{code=\"NOT_FOUND\",method=\"Get\"} 1\n"));
}

TEST(MetricsTest, TooManyLabelValuesCountAsOther) {
  Metrics metrics;
  const auto peers = metrics.AddCounters("muster_peers_total", "Peers.", {"peer"}, 2);
  for (int i = 0; i < 100; ++i) peers.With({std::to_string(i)}).Add();
  peers.With({"1"}).Add();  // one of the first keeps its own series
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("{peer=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("{peer=\"other\"} 98\n"));
  EXPECT_THAT(text, Not(HasSubstr("{peer=\"2\"}")));
}

TEST(MetricsTest, LabelsFromOutsideCannotForgeLines) {
  Metrics metrics;
  metrics.AddGauges("muster_g", "G.", {"l"}, 2).With({"a\"} 1\nforged 2"}).Set(1);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("\nforged")));
}

TEST(MetricsTest, SampledValuesAreReadWhenAsked) {
  Metrics metrics;
  double depth = 1;
  metrics.AddSampledGauge("muster_queue_depth", "Depth.", [&] { return depth; });
  metrics.AddSampledCounter("muster_refused_total", "Refused.", [&] { return depth * 2; });
  depth = 7;
  EXPECT_THAT(metrics.Text(), HasSubstr("# TYPE muster_queue_depth gauge\nmuster_queue_depth 7\n"));
  EXPECT_THAT(metrics.Text(),
              HasSubstr("# TYPE muster_refused_total counter\nmuster_refused_total 14\n"));
}

TEST(MetricsTest, ProcessMetricsAreThere) {
  Metrics metrics;
  metrics.AddProcessMetrics();
  const std::string text = metrics.Text();
  for (const char* name : {"process_resident_memory_bytes", "process_cpu_seconds_total",
                           "process_open_fds", "process_start_time_seconds"}) {
    const size_t at = text.find(std::string("\n") + name + " ");
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_GT(std::stod(text.substr(at + 2 + std::string(name).size())), 0) << name;
  }
}

TEST(MetricsTest, ThreadsMayShareEverything) {
  Metrics metrics;
  const auto calls = metrics.AddCounters("muster_calls_total", "Calls.", {"method"}, 3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) calls.With({std::to_string(i % 3)}).Add();
    });
  }
  metrics.Text();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls.With({"0"}).value() + calls.With({"1"}).value() + calls.With({"2"}).value(),
            2000);
}

}  // namespace
}  // namespace muster
