#include "cli/rpc/https_client.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/supervisor/listening_sockets.h"
#include "services/common/base/error.h"
#include "services/common/identity/authority.h"

namespace muster::cli {
namespace {

constexpr char kFleet[] = "fleet-0badcafe.muster";

// A server whose first answers fail, by path: /lost is cut in the middle, /busy is 503.
class HttpsClientTest : public ::testing::Test {
 protected:
  HttpsClientTest() {
    const auto lose = [this](const httplib::Request&, httplib::Response& response) {
      if (++requests_ > lost_) return response.set_content("whole", "text/plain");
      response.set_content_provider(10, "text/plain", [](size_t, size_t, httplib::DataSink& sink) {
        sink.write("half", 4);
        return false;
      });
    };
    server_.Get("/lost", lose);
    server_.Post("/lost", lose);
    server_.Get("/busy", [this](const httplib::Request&, httplib::Response& response) {
      response.status = ++requests_ > 1 ? 200 : 503;
    });
    server_.Get("/refused", [this](const httplib::Request&, httplib::Response& response) {
      ++requests_;
      response.status = 403;
      response.set_content(R"({"reason":"NOT_YOURS","message":"no"})", "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~HttpsClientTest() override { server_.stop(); }

  std::string Url(const std::string& path) const {
    return "https://localhost:" + std::to_string(port_) + path;
  }
  HttpsClient Client(std::optional<HttpsClient::GatewayOf> identity = std::nullopt) const {
    return HttpsClient(middle_.certificate().ToPem() + root_.certificate().ToPem(), leaf_.ToPem(),
                       key_.ToPkcs8Pem()->view(), std::move(identity));
  }

  X509_STORE* Trust() const {
    X509_STORE* store = X509_STORE_new();
    X509_STORE_add_cert(store, root_.certificate().get());
    X509_STORE_add_cert(store, middle_.certificate().get());
    return store;
  }

  const absl::Time now_ = absl::Now();
  const PrivateKey key_ = *PrivateKey::Generate();
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const Intermediate middle_ = *Intermediate::Load(
      kFleet, key_, *root_.SignIntermediate(key_.public_key(), now_), root_.certificate());
  const Certificate leaf_ =
      *middle_.Issue(ServiceIdentity{ServiceRole::kGateway, "g"}, key_.public_key(), {"localhost"},
                     now_, now_ + absl::Hours(1));
  httplib::SSLServer server_{leaf_.get(), key_.get(), Trust()};
  int port_ = 0;
  int lost_ = 1;  // requests
  std::atomic<int> requests_ = 0;
  std::jthread thread_;
};

TEST_F(HttpsClientTest, GetIsRepeatedAfterAConnectionIsLostWithinTheAnswer) {
  const auto answer = Client().Get(Url("/lost"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "whole");
  EXPECT_EQ(requests_, 2);
}

TEST_F(HttpsClientTest, GetIsRepeatedForALimitedTime) {
  lost_ = 1'000;
  const absl::Status lost = Client().Get(Url("/lost")).status();
  EXPECT_EQ(ReasonOf(lost), "GATEWAY_UNREACHABLE");
  // A server that is slow to close a connection may refuse the handshake of the next one instead.
  EXPECT_THAT(
      std::string(lost.message()),
      ::testing::AnyOf(
          absl::StrCat("localhost:", port_, " closed the connection before the end of its answer"),
          ::testing::HasSubstr(absl::StrCat("the TLS handshake with localhost:", port_))));
  // Every 250 ms.
  EXPECT_GT(requests_, 1);
  EXPECT_LE(requests_, 9);
}

TEST_F(HttpsClientTest, GetIsRepeatedWhileTheServiceIsUnavailable) {
  EXPECT_TRUE(Client().Get(Url("/busy")).ok());
  EXPECT_EQ(requests_, 2);
}

TEST_F(HttpsClientTest, PostThatMayHaveBeenHandledIsNotRepeated) {
  EXPECT_EQ(ReasonOf(Client().Post(Url("/lost")).status()), "GATEWAY_UNREACHABLE");
  EXPECT_EQ(requests_, 1);
}

TEST_F(HttpsClientTest, RefusalIsNotRepeated) {
  EXPECT_EQ(ReasonOf(Client().Get(Url("/refused")).status()), "NOT_YOURS");
  EXPECT_EQ(requests_, 1);
}

TEST_F(HttpsClientTest, ServerOfAnotherFleetIsNotUnreachable) {
  const auto other = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  HttpsClient client(other.certificate().ToPem(), leaf_.ToPem(), key_.ToPkcs8Pem()->view());
  EXPECT_EQ(ReasonOf(client.Get(Url("/busy")).status()), "SERVER_CERTIFICATE_REFUSED");
  EXPECT_EQ(requests_, 0);
}

TEST_F(HttpsClientTest, OnlyAGatewayOfTheFleetIsAcceptedIfRequired) {
  HttpsClient client = Client(HttpsClient::GatewayOf{kFleet, /*or_none=*/true});
  EXPECT_TRUE(client.Get(Url("/busy")).ok());
  HttpsClient of_another = Client(HttpsClient::GatewayOf{"fleet-12345678.muster"});
  EXPECT_EQ(ReasonOf(of_another.Get(Url("/busy")).status()), "SERVER_CERTIFICATE_REFUSED");

  const auto relay_leaf =
      *middle_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"}, key_.public_key(), {"localhost"},
                     now_, now_ + absl::Hours(1));
  httplib::SSLServer relay(relay_leaf.get(), key_.get(), Trust());
  const int port = relay.bind_to_any_port("127.0.0.1");
  const std::jthread thread([&relay] { relay.listen_after_bind(); });
  while (!relay.is_running()) std::this_thread::yield();
  const absl::Status refused = client.Get(absl::StrCat("https://localhost:", port, "/")).status();
  relay.stop();
  EXPECT_EQ(ReasonOf(refused), "SERVER_CERTIFICATE_REFUSED");
  EXPECT_NE(refused.message().find("it is not that of a gateway"), std::string::npos) << refused;
}

TEST_F(HttpsClientTest, ProxyThatDoesNotRunIsNamed) {
  std::string proxy;
  {
    supervisor::ListeningSockets sockets;
    proxy = sockets.Listen("proxy", {"127.0.0.1", 0})->address.ToString();
  }
  setenv("https_proxy", ("http://" + proxy).c_str(), 1);
  const absl::Status status = Client().Get(Url("/busy")).status();
  unsetenv("https_proxy");
  EXPECT_EQ(ReasonOf(status), "PROXY_FAILED");
  EXPECT_EQ(status.message(), "cannot connect through the proxy " + proxy + ": Connection refused");
}

}  // namespace
}  // namespace muster::cli
