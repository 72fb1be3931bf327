#include "services/client/https_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "services/client/attempt_state.h"
#include "services/client/delivery.h"
#include "services/client/test_peer.h"
#include "services/common/base/error.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster::client {
namespace {

using ::testing::HasSubstr;

// What a run's listener saw of one request.
struct Seen {
  std::string path;
  std::string body;
  httplib::Headers headers;
};

// A listener of a run with mutual TLS that answers as told.
class Listener {
 public:
  explicit Listener(const TestFleet& fleet)
      : certificate_(Certificate::FromPem(fleet.listener_chain_pem).value()),
        key_(PrivateKey::FromPem(fleet.listener_key_pem).value()),
        authority_(Certificate::FromPem(fleet.run_ca_pem).value()),
        server_(certificate_.get(), key_.get(), Trust()) {
    server_.Put("/.*", [this](const httplib::Request& request, httplib::Response& response,
                              const httplib::ContentReader& read) {
      std::string body;
      read([&](const char* data, size_t size) {
        body.append(data, size);
        return true;
      });
      Answer(request, std::move(body), response);
    });
    server_.Post("/.*", [this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, request.body, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    server_.wait_until_ready_by_polling();
  }
  ~Listener() { server_.stop(); }

  std::string url() const { return "https://localhost:" + std::to_string(port_); }

  std::deque<int> answers;  // then 200; set before use

  std::vector<Seen> seen() {
    std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  struct Server : httplib::SSLServer {
    using httplib::SSLServer::SSLServer;
    void wait_until_ready_by_polling() {
      while (!is_running()) std::this_thread::yield();
    }
  };

  X509_STORE* Trust() const {
    X509_STORE* store = X509_STORE_new();
    X509_STORE_add_cert(store, authority_.get());
    return store;
  }

  void Answer(const httplib::Request& request, std::string body, httplib::Response& response) {
    std::lock_guard lock(mutex_);
    seen_.push_back({request.path, std::move(body), request.headers});
    response.status = answers.empty() ? 200 : answers.front();
    if (!answers.empty()) answers.pop_front();
    if (response.status == 503) response.set_header("Retry-After", "1");
    if (response.status != 200) response.set_content("because\n", "text/plain");
  }

  const Certificate certificate_;
  const PrivateKey key_;
  const Certificate authority_;
  Server server_;
  int port_ = 0;
  std::mutex mutex_;
  std::vector<Seen> seen_;
  std::jthread thread_;
};

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
  Listener listener_;
  HttpsOptions options_;
};

TEST_F(HttpsTransportTest, LooksLikeAnOldSidecarOnTheWire) {
  const std::string body(3'000'000, 'x');
  const auto receipt = Deliver(body, Info());
  ASSERT_TRUE(receipt.ok()) << receipt.status();
  EXPECT_EQ(receipt->size, 3'000'000);
  ASSERT_EQ(listener_.seen().size(), 1U);
  const Seen seen = listener_.seen()[0];
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

TEST_F(HttpsTransportTest, APluginThatRunsOnceHasItsOwnPath) {
  ResultInfo info = Info();
  info.node = "global";
  info.media_type = "";
  info.file_name = "a\r\nX-Evil: 1";
  ASSERT_TRUE(Deliver("x", info).ok());
  const Seen seen = listener_.seen()[0];
  EXPECT_EQ(seen.path, "/api/v1/results/global/facts");
  EXPECT_FALSE(seen.headers.contains("X-Evil"));
  EXPECT_FALSE(seen.headers.contains("Content-Type"));
}

TEST_F(HttpsTransportTest, TriesAgainAfterFaultsOfTheServer) {
  listener_.answers = {500, 503};
  ASSERT_TRUE(Deliver("whole", Info()).ok());
  ASSERT_EQ(listener_.seen().size(), 3U);
  EXPECT_EQ(listener_.seen()[2].body, "whole");
}

TEST_F(HttpsTransportTest, KnowsTheVerdicts) {
  const std::pair<int, std::string> verdicts[] = {{409, "RESULT_CONFLICT"}, {410, "RUN_SEALED"},
                                                  {403, "NOT_YOURS"},       {404, "HTTP_REFUSED"},
                                                  {301, "HTTP_REFUSED"},    {204, "HTTP_REFUSED"}};
  for (const auto& [code, reason] : verdicts) {
    listener_.answers = {code};
    const auto receipt = Deliver("x", Info());
    EXPECT_EQ(ReasonOf(receipt.status()), reason) << code;
  }
  EXPECT_EQ(listener_.seen().size(), std::size(verdicts)) << "one try each";
}

TEST_F(HttpsTransportTest, AnotherRunsListenerIsNotTrusted) {
  options_.ca_pem = TestFleet::Make().run_ca_pem;
  ResultInfo info = Info();
  std::ofstream(path_) << "x";
  OutgoingResult result(info, SourceFile::Open(path_).value());
  const TryOutcome outcome = MakeHttpsTransport(options_)->Try(result, {});
  EXPECT_EQ(ReasonOf(outcome.receipt.status()), "CONNECTION_FAILED");
  EXPECT_TRUE(listener_.seen().empty());
}

TEST_F(HttpsTransportTest, PostsProgress) {
  ASSERT_TRUE(PostProgress(options_, "facts", "n1", R"({"msg":"half"})").ok());
  EXPECT_EQ(listener_.seen()[0].path, "/api/v1/progress/by-node/n1/facts");
  EXPECT_EQ(listener_.seen()[0].body, R"({"msg":"half"})");
}

}  // namespace
}  // namespace muster::client
