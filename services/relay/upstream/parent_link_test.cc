// A relay's link to a parent that the test plays, over real TLS.
#include "services/relay/upstream/parent_link.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "muster/v1/attachment.grpc.pb.h"
#include "services/common/base/executor.h"
#include "services/common/base/mutex.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/timers.h"
#include "services/common/rpc/live_calls.h"
#include "services/relay/testing/recorded_link.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/fake_relay.h"
#include "testing/fixtures/test_commands.h"

namespace muster {
namespace {

constexpr absl::Duration kLong = absl::Minutes(1);

// Welcomes every child, and records its messages after the hello.
class Parent final : public v1::AttachService::Service {
 public:
  // Listens at `port`; 0: at any free port.
  Parent(const TestIssuer& tree, const std::string& name, int port = 0)
      : name_(name), credential_(tree.Issue(ServiceIdentity{ServiceRole::kRelay, name})) {
    grpc::SslServerCredentialsOptions tls(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    tls.pem_root_certs = tree.root_pem();
    tls.pem_key_cert_pairs.push_back({credential_.key_pem, credential_.chain_pem});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::SslServerCredentials(tls),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Parent() override { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }

  // Returns the messages when there are `count`; nothing if there are fewer after `limit`.
  std::vector<v1::AttachRequest> Await(size_t count, absl::Duration limit = kLong) {
    MutexLock lock(mutex_);
    const bool enough = changed_.WaitFor(
        mutex_, limit,
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return said_.size() >= count; });
    return enough ? said_ : std::vector<v1::AttachRequest>();
  }

 private:
  grpc::Status Attach(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::AttachResponse, v1::AttachRequest>* stream) override {
    const Certificate own = Certificate::FromPem(credential_.chain_pem).value();
    v1::AttachResponse response;
    response.mutable_greeting()->set_relay(own.Uri().value());
    response.mutable_greeting()->set_key_sha256(own.Key()->Sha256().value());
    stream->Write(response);
    v1::AttachRequest request;
    if (!stream->Read(&request)) return grpc::Status::OK;
    response.mutable_welcome()->mutable_interval()->set_seconds(60);
    response.mutable_welcome()->add_path(name_);
    response.mutable_welcome()->set_connected(true);
    stream->Write(response);
    while (stream->Read(&request)) {
      MutexLock lock(mutex_);
      said_.push_back(request);
      changed_.NotifyAll();
    }
    return grpc::Status::OK;
  }

  const std::string name_;
  const TestIssuer::Credential credential_;
  int port_ = 0;
  Mutex mutex_;
  CondVar changed_;
  std::vector<v1::AttachRequest> said_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

class ParentLinkTest : public ::testing::Test {
 protected:
  ParentLinkTest() {
    const TestIssuer::Credential own = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r2"});
    for (const auto& [file, text] : {std::pair{"/key.pem", own.key_pem},
                                     {"/cert.pem", own.chain_pem},
                                     {"/ca.pem", fleet_.root_pem()}}) {
      EXPECT_TRUE(WriteFileAtomically(folder_ + file, text).ok());
    }
  }

  void Begin(const std::vector<int>& ports) {
    AttachClientOptions options;
    for (const int port : ports) {
      options.targets.push_back({"127.0.0.1", static_cast<uint16_t>(port)});
    }
    options.return_after = absl::Milliseconds(10);
    options.fleet = std::string(kTestFleet);
    options.uri = "spiffe://" + options.fleet + "/service/relay/r2";
    options.identity_folder = folder_;
    options.is_relay = true;
    const AttachRuntime runtime{SystemClock(), *timers_, executor_};
    link_ = std::make_unique<ParentLink>(std::move(options),
                                         ParentLink::Parts{topology_, trust_, dispatcher_, runtime},
                                         absl::Seconds(60), [](const v1::AttachResponse&) {});
  }

  void AwaitConnected() {
    ASSERT_TRUE(testing::Await([this] { return link_->connected(); }));
  }

  void Attach(const std::string& node) {
    EXPECT_TRUE(
        topology_.Attach(AttachedEntry(node, "r2", absl::Now()), std::make_shared<RecordedLink>())
            .ok());
  }

  void Record(const std::string& node) {
    v1::JobRecords records;
    records.add_records()->set_node(node);
    link_->Receive(std::move(records), [] {});
  }

  const std::string folder_ = ::testing::TempDir();
  const TestIssuer fleet_;
  Parent parent_{fleet_, "r1"};
  Topology topology_{{.name = "r2", .is_root = false}, SystemClock()};
  CommandDispatcher dispatcher_{topology_, SystemClock()};
  LiveCalls live_;
  Trust trust_{std::string(kTestFleet), [] { return std::vector<Certificate>(); }, topology_, live_,
               SystemClock()};
  const std::unique_ptr<TimerService> timers_ = MakeTimerService(/*max_timers=*/16);
  Executor executor_{{.name = "background", .threads = 2}};
  std::unique_ptr<ParentLink> link_;
};

// An acknowledgement of what a node says finds its way down only if the node is known.
TEST_F(ParentLinkTest, TopologyPrecedesRecords) {
  Begin({parent_.port()});
  AwaitConnected();
  for (const char* node : {"n1", "n2"}) {
    Attach(node);
    Record(node);
  }
  const auto said = parent_.Await(4);
  ASSERT_EQ(said.size(), 4);
  for (size_t i = 0; i < said.size(); i += 2) {
    ASSERT_TRUE(said[i].has_topology() && said[i + 1].has_records());
    ASSERT_EQ(said[i].topology().descendants_size(), 1);
    EXPECT_TRUE(said[i].topology().descendants(0).statement().child().ends_with(
        said[i + 1].records().records(0).node()));
  }
  EXPECT_TRUE(said[0].topology().complete());
}

TEST_F(ParentLinkTest, PreferredParentReceivesTheWholeTopology) {
  auto preferred = std::make_unique<Parent>(fleet_, "r3");
  const int port = preferred->port();
  preferred.reset();
  Attach("n1");
  Begin({port, parent_.port()});
  AwaitConnected();
  Record("n1");
  ASSERT_EQ(parent_.Await(2).size(), 2);
  preferred = std::make_unique<Parent>(fleet_, "r3", port);
  std::vector<v1::AttachRequest> said;
  do {  // as n1 does until its record is acknowledged
    Record("n1");
    said = preferred->Await(2, absl::Milliseconds(50));
  } while (said.empty());
  ASSERT_TRUE(said[0].has_topology() && said[1].has_records());
  EXPECT_TRUE(said[0].topology().complete());
  EXPECT_EQ(said[0].topology().descendants_size(), 1);
  EXPECT_EQ(topology_.path(), (std::vector<std::string>{"r3", "r2"}));
}

}  // namespace
}  // namespace muster
