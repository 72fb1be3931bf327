#include "services/common/base/inspection_server.h"

#include <httplib.h>

#include <atomic>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(InspectionServerTest, ShowsMetricsAndHealth) {
  Metrics metrics;
  metrics.AddCounter("muster_things_total", "Things.").Add(3);
  std::atomic<bool> ready = false;
  auto server = InspectionServer::Start(metrics, {.ready = [&] {
                                          return ready ? absl::OkStatus()
                                                       : MakeError(absl::StatusCode::kUnavailable,
                                                                   "STARTING", "store opens", "");
                                        }});
  ASSERT_TRUE(server.ok()) << server.status();
  httplib::Client client("127.0.0.1", (*server)->port());

  const auto text = client.Get("/metrics");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->status, 200);
  EXPECT_EQ(text->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(text->body.find("muster_things_total 3\n"), std::string::npos);

  EXPECT_EQ(client.Get("/livez")->status, 200);
  const auto starting = client.Get("/readyz");
  EXPECT_EQ(starting->status, 503);
  EXPECT_EQ(starting->body, "STARTING: store opens\n");
  ready = true;
  EXPECT_EQ(client.Get("/readyz")->body, "ok\n");
  EXPECT_EQ(client.Get("/else")->status, 404);
}

TEST(InspectionServerTest, APortInUseIsAnError) {
  const Metrics metrics;
  auto first = InspectionServer::Start(metrics, {});
  ASSERT_TRUE(first.ok());
  auto second = InspectionServer::Start(metrics, {.port = (*first)->port()});
  EXPECT_EQ(ReasonOf(second.status()), "PORT_IN_USE");
  const uint16_t port = (*first)->port();
  first->reset();
  second = InspectionServer::Start(metrics, {.port = port});
  EXPECT_TRUE(second.ok()) << second.status();
}

}  // namespace
}  // namespace muster
