// The local endpoint as a plugin uses it, with the real relay behind it.
#include "services/agent/progress_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "services/agent/progress_relay.h"
#include "services/client/client.h"
#include "services/client/test_listener.h"
#include "services/client/test_peer.h"
#include "services/client/test_status_peer.h"
#include "services/common/base/error.h"
#include "services/common/errors/heartbeats.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

constexpr char kJson[] = "application/json";

httplib::Client To(const ProgressEndpoint& endpoint) {
  httplib::Client client("127.0.0.1", endpoint.port());
  client.set_read_timeout(60);
  return client;
}

TEST(ProgressEndpointTest, BodyIsForwardedAndAnsweredForAnyMethod) {
  const auto endpoint = ProgressEndpoint::Start(0, [](const std::string& body) {
                          return ProgressAnswer{418, "said " + body};
                        }).value();
  httplib::Client client = To(*endpoint);
  for (const auto& answer :
       {client.Post("/progress", "x", kJson), client.Put("/progress", "x", kJson),
        client.Patch("/progress", "x", kJson), client.Delete("/progress", "x", kJson)}) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 418);
    EXPECT_EQ(answer->body, "said x");
  }
  EXPECT_EQ(client.Get("/progress")->status, 418);
  EXPECT_EQ(client.Post("/other", "x", kJson)->status, 404);
}

TEST(ProgressEndpointTest, TooLargeBodyIsRefusedAndTheNextAccepted) {
  std::atomic<size_t> largest{0};
  const auto endpoint = ProgressEndpoint::Start(0, [&](const std::string& body) {
                          largest = body.size();
                          return ProgressAnswer{};
                        }).value();
  httplib::Client client = To(*endpoint);
  EXPECT_EQ(client.Post("/progress", std::string(kMaxProgressBody, 'x'), kJson)->status, 200);
  EXPECT_EQ(largest, kMaxProgressBody);
  const std::string huge(kMaxProgressBody + 1, 'x');
  EXPECT_EQ(client.Post("/progress", huge, kJson)->status, 413);
  const auto chunked = client.Post(
      "/progress",
      [&](size_t offset, httplib::DataSink& sink) {
        if (offset >= huge.size()) {
          sink.done();
          return true;
        }
        return sink.write(huge.data(), std::min<size_t>(huge.size() - offset, 65536));
      },
      kJson);
  ASSERT_TRUE(chunked);
  EXPECT_EQ(chunked->status, 413);
  EXPECT_EQ(largest, kMaxProgressBody);
  EXPECT_EQ(client.Post("/progress", "x", kJson)->status, 200);
}

TEST(ProgressEndpointTest, UsedPortFails) {
  const auto relay = [](const std::string&) { return ProgressAnswer{}; };
  const auto first = ProgressEndpoint::Start(0, relay).value();
  const auto second = ProgressEndpoint::Start(first->port(), relay);
  EXPECT_EQ(ReasonOf(second.status()), "PORT_IN_USE");
  EXPECT_THAT(NextStepOf(second.status()), HasSubstr("progress_port"));
}

class ProgressRelayTest : public ::testing::Test {
 protected:
  ProgressRelayTest() {
    const auto [chain, key] = fleet_.RunCredential("n1");
    config_.run = fleet_.run;
    config_.plugin = "facts";
    config_.node = "n1";
    config_.fleet_ca_cert = fleet_.root_pem;
    config_.ca_cert = fleet_.run_ca_pem;
    config_.client_cert = chain;
    config_.client_key = key;
  }

  // Starts the configured endpoint.
  void Open() {
    client::Status status;
    client_ = client::Client::Create(config_, &status);
    ASSERT_TRUE(client_) << status.message;
    endpoint_ = ProgressEndpoint::Start(0, MakeProgressRelay(config_, *client_)).value();
  }
  int Post(const std::string& body) {
    return To(*endpoint_).Post("/progress", body, kJson)->status;
  }

  const client::TestFleet fleet_ = client::TestFleet::Make();
  client::Config config_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<ProgressEndpoint> endpoint_;
};

TEST_F(ProgressRelayTest, ReportsAreForwardedToTheStatusServiceAndAnswered) {
  client::TestStatusPeer status(fleet_);
  absl::Status verdict;
  status.judge_progress = [&] { return verdict; };
  status.Start();
  config_.grpc_targets = {"127.0.0.1:1"};
  config_.status_targets = {status.target()};
  Open();
  EXPECT_EQ(Post(R"({"msg":"half","total":8,"completed":4})"), 200);
  ASSERT_EQ(status.reports().size(), 1U);
  EXPECT_EQ(status.reports()[0].key().node(), "n1");
  EXPECT_EQ(status.reports()[0].completed(), 4);
  EXPECT_EQ(Post("not JSON"), 400);
  verdict = errors::InvalidProgress("a count is negative");
  EXPECT_EQ(Post(R"({"completed":-1})"), 400);
  verdict = errors::PairNotPlanned("r", "facts", "n1");
  EXPECT_EQ(Post("{}"), 403);
  verdict = errors::StatusNotReady();
  EXPECT_EQ(Post("{}"), 503);
  status.Stop();
  EXPECT_EQ(Post("{}"), 500);
}

TEST_F(ProgressRelayTest, ConcurrentReportsAreForwarded) {
  client::TestStatusPeer status(fleet_);
  status.Start();
  config_.grpc_targets = {"127.0.0.1:1"};
  config_.status_targets = {status.target()};
  Open();
  {
    std::vector<std::jthread> plugins;
    for (int i = 0; i < 8; ++i) {
      plugins.emplace_back([&] {
        for (int j = 0; j < 5; ++j) EXPECT_EQ(Post("{}"), 200);
      });
    }
  }
  EXPECT_EQ(status.reports().size(), 40U);
}

TEST_F(ProgressRelayTest, AnswerOfTheListenerIsReturned) {
  client::TestListener listener(fleet_);
  listener.answers = {200, 418};
  config_.aggregator_url = listener.url();
  Open();
  EXPECT_EQ(Post(R"({"msg":"half"})"), 200);
  EXPECT_EQ(listener.seen()[0].path, "/api/v1/progress/by-node/n1/facts");
  EXPECT_EQ(listener.seen()[0].body, R"({"msg":"half"})");
  const auto teapot = To(*endpoint_).Post("/progress", "{}", kJson);
  EXPECT_EQ(teapot->status, 418);
  EXPECT_EQ(teapot->body, "because\n");
}

}  // namespace
}  // namespace muster
