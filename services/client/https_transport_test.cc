#include "services/client/https_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "services/client/attempt_state.h"
#include "services/client/delivery.h"
#include "services/client/test_listener.h"
#include "services/client/test_peer.h"
#include "services/common/base/error.h"

namespace muster::client {
namespace {

class HttpsTransportTest : public ::testing::Test {
 protected:
  HttpsTransportTest() : path_(::testing::TempDir() + "/https_result.json"), listener_(fleet_) {
    const auto [chain, key] = fleet_.RunCredential("n1");
    options_ = {listener_.url() + "/some/old/path", fleet_.run_ca_pem, chain, key};
  }
  ~HttpsTransportTest() override { std::filesystem::remove(path_); }

  absl::StatusOr<CommitReceipt> Deliver(const std::string& body, ResultInfo info) {
    std::ofstream(path_, std::ios::binary) << body;
    auto attempts = AttemptState::Open("", fleet_.run, info.plugin, info.node);
    OutgoingResult result(info, SourceFile::Open(path_).value());
    const auto transport = MakeHttpsTransport(options_);
    return DeliverUntilCommitted(*transport, result, **attempts, absl::Now() + absl::Minutes(1),
                                 {});
  }

  ResultInfo Info() const {
    ResultInfo info{fleet_.run, "facts", "n1"};
    info.media_type = "application/json";
    info.file_name = "facts.json";
    return info;
  }

  const TestFleet fleet_ = TestFleet::Make();
  const std::string path_;
  TestListener listener_;
  HttpsOptions options_;
};

TEST_F(HttpsTransportTest, RequestMatchesThatOfALegacySidecar) {
  const std::string body(3'000'000, 'x');
  const auto receipt = Deliver(body, Info());
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->size, 3'000'000);
  ASSERT_EQ(listener_.seen().size(), 1U);
  const SeenRequest seen = listener_.seen()[0];
  EXPECT_EQ(seen.path, "/api/v1/results/by-node/n1/facts");
  EXPECT_TRUE(seen.body == body);
  const auto header = [&](const char* name) {
    const auto found = seen.headers.find(name);
    return found == seen.headers.end() ? std::string("(none)") : found->second;
  };
  EXPECT_EQ(header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(header("Content-Length"), "(none)");
  EXPECT_EQ(header("Expect"), "(none)");
  EXPECT_EQ(header("Content-Type"), "application/json");
  EXPECT_EQ(header("Content-Disposition"), "attachment;filename=facts.json");
}

TEST_F(HttpsTransportTest, PluginThatRunsOnceUsesTheGlobalPath) {
  ResultInfo info = Info();
  info.node = "global";
  info.media_type = "";
  info.file_name = "a\r\nX-Evil: 1";
  ASSERT_TRUE(Deliver("x", info).ok());
  const SeenRequest seen = listener_.seen()[0];
  EXPECT_EQ(seen.path, "/api/v1/results/global/facts");
  EXPECT_FALSE(seen.headers.contains("X-Evil"));
  EXPECT_FALSE(seen.headers.contains("Content-Type"));
}

TEST_F(HttpsTransportTest, ServerErrorIsRetried) {
  listener_.answers = {500, 503};
  ASSERT_TRUE(Deliver("whole", Info()).ok());
  ASSERT_EQ(listener_.seen().size(), 3U);
  EXPECT_EQ(listener_.seen()[2].body, "whole");
}

TEST_F(HttpsTransportTest, StatusCodesMapToErrors) {
  const std::pair<int, std::string> verdicts[] = {{409, "RESULT_CONFLICT"}, {410, "RUN_SEALED"},
                                                  {403, "NOT_YOURS"},       {404, "HTTP_REFUSED"},
                                                  {301, "HTTP_REFUSED"},    {204, "HTTP_REFUSED"},
                                                  {413, "RESULT_TOO_LARGE"}};
  for (const auto& [code, reason] : verdicts) {
    listener_.answers = {code};
    const auto receipt = Deliver("x", Info());
    EXPECT_EQ(ReasonOf(receipt.status()), reason) << code;
  }
  EXPECT_EQ(listener_.seen().size(), std::size(verdicts)) << "one try each";
}

TEST_F(HttpsTransportTest, ListenerOfAnotherRunIsNotTrusted) {
  options_.ca_pem = TestFleet::Make().run_ca_pem;
  ResultInfo info = Info();
  std::ofstream(path_) << "x";
  OutgoingResult result(info, SourceFile::Open(path_).value());
  const TryOutcome outcome = MakeHttpsTransport(options_)->Try(result, {});
  EXPECT_EQ(ReasonOf(outcome.receipt.status()), "CONNECTION_FAILED");
  EXPECT_TRUE(listener_.seen().empty());
}

TEST_F(HttpsTransportTest, ProgressIsPosted) {
  const auto taken = RelayProgress(options_, "facts", "n1", R"({"msg":"half"})");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->code, 200);
  EXPECT_TRUE(taken->status.ok());
  EXPECT_EQ(listener_.seen()[0].path, "/api/v1/progress/by-node/n1/facts");
  EXPECT_EQ(listener_.seen()[0].body, R"({"msg":"half"})");
}

}  // namespace
}  // namespace muster::client
