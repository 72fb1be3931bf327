// Requests for secrets against a relay that answers, lies, or is silent. The jobs service itself is
// tested in services/jobs/secret_service_test.cc, and both with relays in
// testing/e2e/secret_test.go.
#include "services/agent/attach/relay_secrets.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/secrets.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/identity/authority.h"
#include "services/common/jobs/secrets_exchange.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";
constexpr char kJob[] = "0123456789abcdef0123456789abcdef";

class TestRelay final : public v1::SecretService::Service {
 public:
  grpc::Status FetchSecrets(grpc::ServerContext* context, const v1::FetchSecretsRequest* request,
                            v1::FetchSecretsResponse* response) override {
    {
      MutexLock lock(mutex);
      keys.insert(request->key());
    }
    ++calls;
    return ToGrpc(answer(context, *request, response));
  }

  using Answer = std::function<absl::Status(grpc::ServerContext*, const v1::FetchSecretsRequest&,
                                            v1::FetchSecretsResponse*)>;
  Answer answer;
  std::atomic<int> calls = 0;
  Mutex mutex;
  std::set<std::string> keys ABSL_GUARDED_BY(mutex);
};

class RelaySecretsTest : public ::testing::Test {
 protected:
  RelaySecretsTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    const SigningFiles node = FilesOf(NodeIdentity{"n1"});
    Write("key.pem", std::string(node.key.ToPkcs8Pem()->view()));
    Write("cert.pem", node.chain_pem);
    Write("ca.pem", ChainToPem(std::vector<Certificate>{root_.certificate()}));
    auto& value = *values_.add_values();
    value.set_name("db");
    value.set_value("hunter22");
    relay_.answer = [this](grpc::ServerContext*, const v1::FetchSecretsRequest& request,
                           v1::FetchSecretsResponse* response) {
      *response = *SealSecrets(service_, kFleet, request, values_);
      return absl::OkStatus();
    };
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&relay_);
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                   grpc::InsecureChannelCredentials());
    secrets_.SetChannel([this] { return channel_; });
  }
  ~RelaySecretsTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFileDurably(PosixFileOps(), folder_ + "/" + name, text).ok());
  }
  SigningFiles FilesOf(const FleetName& name) const {
    const PrivateKey key = *PrivateKey::Generate();
    const Certificate leaf =
        *intermediate_.Issue(name, key.public_key(), {}, now_, now_ + absl::Hours(1));
    return {key, ChainToPem(std::vector<Certificate>{leaf, intermediate_.certificate()})};
  }
  absl::StatusOr<v1::SecretValues> Fetch() {
    return secrets_.Fetch(kJob, [this] { return stopped_.load(); });
  }
  // Fails the first calls with this error.
  void FailFirst(int calls, const absl::Status& error) {
    relay_.answer = [this, calls, error, answer = relay_.answer](
                        grpc::ServerContext* context, const v1::FetchSecretsRequest& request,
                        v1::FetchSecretsResponse* response) {
      return relay_.calls <= calls ? error : answer(context, request, response);
    };
  }

  const std::string folder_ = ::testing::TempDir() + "/relay-secrets";
  const absl::Time now_ = absl::Now();
  const FleetRoot root_ = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const PrivateKey intermediate_key_ = *PrivateKey::Generate();
  const Intermediate intermediate_ = *Intermediate::Load(
      kFleet, intermediate_key_, *root_.SignIntermediate(intermediate_key_.public_key(), now_),
      root_.certificate());
  const SigningFiles service_ = FilesOf(ServiceIdentity{ServiceRole::kJobs, "main"});
  v1::SecretValues values_;
  TestRelay relay_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::atomic<bool> stopped_ = false;
  RelaySecrets secrets_{{.fleet = kFleet, .node = "n1", .identity_folder = folder_}};
};

TEST_F(RelaySecretsTest, LostAnswersAreRequestedAgainWithANewKey) {
  FailFirst(2, absl::UnavailableError("the connection was reset"));
  const auto values = Fetch();
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ(values->values(0).value(), "hunter22");
  EXPECT_EQ(relay_.calls, 3);
  MutexLock lock(relay_.mutex);
  EXPECT_EQ(relay_.keys.size(), 3u);
}

TEST_F(RelaySecretsTest, ForgedAnswerIsRefusedImmediately) {
  // The relay seals other values.
  const SigningFiles own = FilesOf(ServiceIdentity{ServiceRole::kRelay, "r1"});
  relay_.answer = [&](grpc::ServerContext*, const v1::FetchSecretsRequest& request,
                      v1::FetchSecretsResponse* response) {
    *response = *SealSecrets(own, kFleet, request, values_);
    return absl::OkStatus();
  };
  EXPECT_EQ(ReasonOf(Fetch().status()), "SECRET_UNAVAILABLE");
  EXPECT_EQ(relay_.calls, 1);
}

TEST_F(RelaySecretsTest, AnswerToAnEarlierRequestIsRefused) {
  v1::FetchSecretsResponse first;
  relay_.answer = [&, answer = relay_.answer](grpc::ServerContext* context,
                                              const v1::FetchSecretsRequest& request,
                                              v1::FetchSecretsResponse* response) {
    if (first.sealed().empty()) EXPECT_TRUE(answer(context, request, &first).ok());
    *response = first;
    return absl::OkStatus();
  };
  EXPECT_TRUE(Fetch().ok());
  EXPECT_EQ(ReasonOf(Fetch().status()), "SECRET_UNAVAILABLE");
}

TEST_F(RelaySecretsTest, RefusalIsNotRepeatedAndItsReasonIsKept) {
  FailFirst(100, absl::NotFoundError("the secret was deleted"));
  const absl::Status status = Fetch().status();
  EXPECT_EQ(ReasonOf(status), "SECRET_UNAVAILABLE");
  EXPECT_NE(status.message().find("the secret was deleted"), absl::string_view::npos);
  EXPECT_EQ(relay_.calls, 1);
}

TEST_F(RelaySecretsTest, StopEndsTheWaitForASilentRelay) {
  relay_.answer = [](grpc::ServerContext* context, const v1::FetchSecretsRequest&,
                     v1::FetchSecretsResponse*) {
    testing::Await([&] { return context->IsCancelled(); });
    return absl::CancelledError("");
  };
  std::thread stop([this] {
    EXPECT_TRUE(testing::Await([&] { return relay_.calls == 1; }));
    stopped_ = true;
  });
  EXPECT_EQ(ReasonOf(Fetch().status()), "SECRET_UNAVAILABLE");
  stop.join();
}

TEST_F(RelaySecretsTest, WithoutARelayItWaitsAndAfterTheStopOfTheAgentItFails) {
  int asked = 0;
  secrets_.SetChannel(
      [&]() -> std::shared_ptr<grpc::Channel> { return ++asked < 3 ? nullptr : channel_; });
  EXPECT_TRUE(Fetch().ok());
  EXPECT_EQ(asked, 3);
  secrets_.SetChannel(nullptr);
  EXPECT_EQ(ReasonOf(Fetch().status()), "SECRET_UNAVAILABLE");
}

}  // namespace
}  // namespace muster
