#include "services/common/service/service_host.h"

#include <httplib.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/join.grpc.pb.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/secret_file.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/process.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/fake_relay.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_commands.h"

namespace muster {
namespace {

// Answers GetShare; the first call, if the test has set `go_on`, when the test permits it.
class Shares final : public v1::ShareService::CallbackService {
 public:
  explicit Shares(const RpcRuntime& runtime) : runtime_(runtime) {}

  grpc::ServerUnaryReactor* GetShare(grpc::CallbackServerContext* context,
                                     const v1::GetShareRequest* request,
                                     v1::Share* response) override {
    return Answer(runtime_, context, "/muster.v1.ShareService/GetShare", {*request, response},
                  [this](Call& call) {
                    if (go_on && !entered_.exchange(true)) {
                      entered.set_value();
                      go_on->get_future().get();
                    }
                    return call.Authorize(Resource::Own());
                  });
  }

  std::promise<void> entered;
  std::optional<std::promise<void>> go_on;

 private:
  const RpcRuntime runtime_;
  std::atomic<bool> entered_ = false;
};

class Joining final : public v1::JoinService::CallbackService {
 public:
  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context, const v1::JoinRequest*,
                                 v1::NodeCertificate* response) override {
    response->set_node("n7");
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

class ServiceHostTest : public ::testing::Test {
 protected:
  ServiceHostTest() {
    RequireTls13();
    std::filesystem::create_directories(folder_);
    const TestIssuer::Credential own = issuer_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"});
    Write("key.pem", own.key_pem);
    Write("cert.pem", own.chain_pem);
    Write("ca.pem", issuer_.root_pem());
  }
  ~ServiceHostTest() override {
    host_.StopServing(absl::ZeroDuration());
    host_.StopInspection();
    std::filesystem::remove_all(folder_);
  }

  void Write(const std::string& name, const std::string& content) const {
    ASSERT_TRUE(WriteFileAtomically(folder_ / name, content).ok());
  }

  ServiceHost::Options Options() {
    ServiceHost::Options options;
    options.name = "relay";
    options.listen = HostPort{"127.0.0.1", 0};
    options.addresses_file = folder_ / "addresses.json";
    options.certificate_folder = folder_;
    options.is_revoked = [this](const Caller& caller) {
      return caller.identity == Identity{kTestFleet, NodeIdentity{revoked_}};
    };
    options.ready = [this] {
      return ready_ ? absl::OkStatus() : absl::UnavailableError("the store opens");
    };
    return options;
  }

  std::shared_ptr<grpc::Channel> Connect(const FleetName& name) const {
    const TestIssuer::Credential credential = issuer_.Issue(name);
    const ChannelIdentity identity = {kTestFleet, issuer_.root_pem(), credential.chain_pem,
                                      credential.key_pem};
    return MakeChannel(absl::StrCat("127.0.0.1:", host_.port()),
                       MakeChannelCredentials(identity, {ServiceRole::kRelay}),
                       /*own_connection=*/true);
  }
  absl::Status GetShare(const FleetName& name) const {
    return testing::CallUnary<v1::ShareService>(Connect(name), &v1::ShareService::Stub::GetShare,
                                                v1::GetShareRequest())
        .status();
  }

  nlohmann::json Addresses() const {
    return nlohmann::json::parse(*ReadFileBounded(folder_ / "addresses.json", 1 << 16));
  }
  httplib::Result Inspect(const std::string& path) const {
    return httplib::Client("http://" + Addresses()["inspection"].get<std::string>()).Get(path);
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const TestIssuer issuer_;
  const absl::Time expires_ = absl::FromUnixSeconds(1'800'000'000);
  std::string revoked_;
  std::atomic<bool> ready_ = true;
  FakeClock timers_;
  FakeClock clock_{absl::Now()};  // of the certificates
  Metrics metrics_;
  Executor executor_{{.name = "test", .threads = 2}};
  ServiceHost host_{kTestFleet,
                    [this] { return std::vector{*Certificate::FromPem(issuer_.root_pem())}; },
                    [this] { return expires_; },
                    clock_,
                    timers_,
                    metrics_};
  Shares shares_{host_.Runtime(executor_)};
  Joining joining_;
};

TEST_F(ServiceHostTest, CallsReachTheServiceAndAreCounted) {
  ASSERT_EQ(host_.Serve(Options(), {&shares_}), absl::OkStatus());
  EXPECT_EQ(GetShare(NodeIdentity{"n1"}), absl::OkStatus());
  const auto metrics = Inspect("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_NE(metrics->body.find("muster_rpc_calls_total{code=\"OK\","
                               "method=\"/muster.v1.ShareService/GetShare\"} 1\n"),
            std::string::npos)
      << metrics->body;
  EXPECT_NE(metrics->body.find("muster_certificate_expires_timestamp_seconds 1800000000\n"),
            std::string::npos);
}

TEST_F(ServiceHostTest, RevokedCallerIsRefused) {
  revoked_ = "n1";
  ASSERT_EQ(host_.Serve(Options(), {&shares_}), absl::OkStatus());
  EXPECT_NE(GetShare(NodeIdentity{"n1"}).message().find("REVOKED: "), absl::string_view::npos);
  EXPECT_EQ(GetShare(NodeIdentity{"n2"}), absl::OkStatus());
}

TEST_F(ServiceHostTest, AddressesOfAllListenersAreWritten) {
  ServiceHost::Options options = Options();
  options.join_listen = HostPort{"127.0.0.1", 0};
  options.join_service = &joining_;
  ASSERT_EQ(host_.Serve(std::move(options), {&shares_}), absl::OkStatus());
  const nlohmann::json addresses = Addresses();
  EXPECT_EQ(addresses.size(), 4u);
  EXPECT_EQ(addresses["relay"], absl::StrCat("127.0.0.1:", host_.port()));
  EXPECT_EQ(addresses["health"], absl::StrCat("127.0.0.1:", host_.health_port()));
  EXPECT_EQ(addresses["join"], absl::StrCat("127.0.0.1:", host_.join_port()));
  EXPECT_EQ(Inspect("/livez")->status, 200);
}

TEST_F(ServiceHostTest, PeerWithoutACertificateReachesTheJoinServiceAlone) {
  ServiceHost::Options options = Options();
  options.join_listen = HostPort{"127.0.0.1", 0};
  options.join_service = &joining_;
  ASSERT_EQ(host_.Serve(std::move(options), {&shares_}), absl::OkStatus());
  const auto channel = MakeChannel(
      absl::StrCat("127.0.0.1:", host_.join_port()),
      MakeOpenChannelCredentials(kTestFleet, issuer_.root_pem(), {ServiceRole::kRelay}));
  const auto joined =
      testing::CallUnary<v1::JoinService>(channel, &v1::JoinService::Stub::Join, v1::JoinRequest());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->node(), "n7");
  EXPECT_TRUE(
      absl::IsUnimplemented(testing::CallUnary<v1::ShareService>(
                                channel, &v1::ShareService::Stub::GetShare, v1::GetShareRequest())
                                .status()));
}

TEST_F(ServiceHostTest, ReadinessEndsWithBeginStop) {
  ready_ = false;
  ASSERT_EQ(host_.Serve(Options(), {&shares_}), absl::OkStatus());
  EXPECT_EQ(Inspect("/readyz")->status, 503);
  ready_ = true;
  EXPECT_EQ(Inspect("/readyz")->status, 200);
  EXPECT_TRUE(host_.BeginStop());
  EXPECT_EQ(Inspect("/readyz")->status, 503);
  EXPECT_EQ(Inspect("/livez")->status, 200);
  EXPECT_FALSE(host_.BeginStop());
}

TEST_F(ServiceHostTest, StopWaitsForTheCallInProgress) {
  shares_.go_on.emplace();
  ASSERT_EQ(host_.Serve(Options(), {&shares_}), absl::OkStatus());
  auto call = std::async(std::launch::async, [this] { return GetShare(NodeIdentity{"n1"}); });
  shares_.entered.get_future().get();
  auto stopped = std::async(std::launch::async, [this] { host_.StopServing(absl::Minutes(1)); });
  EXPECT_TRUE(testing::Await([this] { return !GetShare(NodeIdentity{"n2"}).ok(); }));
  shares_.go_on->set_value();
  EXPECT_EQ(call.get(), absl::OkStatus());
  stopped.get();
}

TEST_F(ServiceHostTest, CallPastTheDrainIsCancelled) {
  shares_.go_on.emplace();
  ASSERT_EQ(host_.Serve(Options(), {&shares_}), absl::OkStatus());
  auto call = std::async(std::launch::async, [this] { return GetShare(NodeIdentity{"n1"}); });
  shares_.entered.get_future().get();
  auto stopped =
      std::async(std::launch::async, [this] { host_.StopServing(absl::ZeroDuration()); });
  EXPECT_FALSE(call.get().ok());
  shares_.go_on->set_value();
  stopped.get();
}

TEST_F(ServiceHostTest, CallIsCancelledWhenTheCertificateOfItsConnectionExpires) {
  shares_.go_on.emplace();
  ASSERT_EQ(host_.Serve(Options(), {&shares_}), absl::OkStatus());
  auto call = std::async(std::launch::async, [this] { return GetShare(NodeIdentity{"n1"}); });
  shares_.entered.get_future().get();
  EXPECT_EQ(GetShare(NodeIdentity{"n2"}), absl::OkStatus());
  clock_.Advance(absl::Hours(24 * 365 * 100));
  host_.Tick(absl::InfiniteDuration());
  EXPECT_TRUE(absl::IsCancelled(call.get()));
  shares_.go_on->set_value();
}

TEST_F(ServiceHostTest, AddressInUseIsAnError) {
  ASSERT_EQ(host_.Serve(Options(), {&shares_}), absl::OkStatus());
  Metrics metrics;
  ServiceHost second(
      kTestFleet, [] { return std::vector<Certificate>(); }, [this] { return expires_; },
      SystemClock(), timers_, metrics);
  Shares shares(second.Runtime(executor_));
  ServiceHost::Options options = Options();
  options.listen.port = static_cast<uint16_t>(host_.port());
  EXPECT_EQ(ReasonOf(second.Serve(std::move(options), {&shares})), "LISTEN_FAILED");
}

}  // namespace
}  // namespace muster
