// Streams of children that behave badly, over real TLS.
#include "services/relay/topology/attach_service.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/key.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/open_streams.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/rpc/rpc_metrics.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/status.h"
#include "services/relay/jobs/command_dispatcher.h"
#include "services/relay/testing/relay_fixture.h"
#include "services/relay/testing/stub_upstream.h"
#include "services/relay/trust.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using testing::Await;
using ::testing::HasSubstr;
using testing::kRelayTestFleet;
using testing::RelayTestFleet;
using testing::StubUpstream;

std::string UriOf(const FleetName& name) {
  return std::visit([](const auto& one) { return ToUri({kRelayTestFleet, one}).value(); }, name);
}

// Counts the messages of children, and accepts them when the test calls AcceptAll.
class CountedRecords : public RecordSink {
 public:
  void Receive(v1::JobRecords records, Done done) override {
    MutexLock lock(mutex_);
    if (records.records_size() > 0) ++messages_[records.records(0).node()];
    waiting_.push_back(std::move(done));
  }
  void NoteRefused(const v1::JobRecord&, const absl::Status&) override { ++refused; }
  int messages(const std::string& node) {
    MutexLock lock(mutex_);
    return messages_[node];
  }
  void AcceptAll() {
    std::vector<Done> waiting;
    {
      MutexLock lock(mutex_);
      waiting.swap(waiting_);
    }
    for (Done& done : waiting) done();
  }
  std::atomic<int> refused = 0;

 private:
  Mutex mutex_;
  std::map<std::string, int> messages_ ABSL_GUARDED_BY(mutex_);
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
};

class AttachServiceTest : public ::testing::Test {
 protected:
  AttachServiceTest() : tls_(fleet_.WriteIdentity(Relay("root"), "root/tls")) {
    topology_.Listen(
        [this](const std::vector<std::string>& names) { dispatcher_.OnReachable(names); }, {});
    RpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.health_listen = "127.0.0.1:0";
    options.certificate_folder = tls_;
    server_ = RpcServer::Start(std::move(options), callers_, canceller_, rpc_metrics_, {&service_})
                  .value();
  }
  ~AttachServiceTest() override {
    service_.EndStreams();
    server_.reset();
    records_.AcceptAll();
  }

  static ServiceIdentity Relay(const std::string& name) { return {ServiceRole::kRelay, name}; }
  static std::vector<Certificate> Roots(const RelayTestFleet& fleet) {
    return {Certificate::FromPem(fleet.root_pem()).value()};
  }

  RelaySelf Self() const {
    const Certificate own =
        Certificate::FromPem(ReadSmallFile(PosixFileOps(), tls_ + "/cert.pem", 65'536).value())
            .value();
    return {own.Uri().value(), own.Key()->Sha256().value()};
  }

  AttachParts Parts() {
    return {topology_,  records_,      record_filter_,   trust_,
            upstream_,  SystemClock(), absl::Minutes(5), [this] { return Self(); },
            statements_};
  }

  bool IsAttached(const std::string& name) const { return topology_.Route(name) != nullptr; }

  const RelayTestFleet fleet_;
  const std::string tls_;
  Topology topology_{{"root", true, 100}, SystemClock()};
  CallCanceller canceller_;
  CommandDispatcher dispatcher_{topology_, SystemClock()};
  RecordFilter record_filter_{topology_};
  Trust trust_{kRelayTestFleet, [this] { return Roots(fleet_); }, topology_, canceller_,
               SystemClock()};
  CountedRecords records_;
  StubUpstream upstream_;
  Metrics metrics_;
  StatementBudget statements_{SystemClock(), metrics_};
  RpcMetrics rpc_metrics_{metrics_};
  Executor executor_{{"request", 2, 1024}};
  CallerResolver callers_{kRelayTestFleet, SystemClock()};
  FakeClock stream_clock_;
  OpenStreams streams_{metrics_};
  AttachService service_{
      {&callers_, &executor_, &canceller_, &rpc_metrics_, &stream_clock_, &streams_}, Parts()};
  std::unique_ptr<RpcServer> server_;

  // A child that the test plays.
  class Child {
   public:
    Child(const AttachServiceTest& test, const FleetName& name)
        : uri_(UriOf(name)), credential_(test.fleet_.Issue(name)) {
      const ChannelIdentity identity = {kRelayTestFleet, test.fleet_.root_pem(),
                                        credential_.chain_pem, credential_.key_pem};
      stub_ = v1::AttachService::NewStub(
          MakeChannel(absl::StrCat("127.0.0.1:", test.server_->port()),
                      MakeChannelCredentials(identity, {ServiceRole::kRelay}), true));
      context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
      stream_ = stub_->Attach(&context_);
      greeting_ = Read().greeting();
    }
    ~Child() {
      context_.TryCancel();
      if (stream_ != nullptr) stream_->Finish();
    }

    v1::AttachRequest Hello() const {
      v1::AttachRequest message;
      v1::AttachRequest::Hello& hello = *message.mutable_hello();
      *hello.mutable_statement() = Statement(uri_, greeting_.relay(), greeting_.key_sha256());
      hello.set_instance_id("1");
      return message;
    }
    v1::AttachStatement Statement(const std::string& child, const std::string& relay,
                                  const std::string& key_sha256) const {
      return SignAttachStatement(*PrivateKey::FromPem(credential_.key_pem), credential_.chain_pem,
                                 child, relay, key_sha256, absl::Now() + absl::Minutes(30))
          .value();
    }

    bool Write(const v1::AttachRequest& message) { return stream_->Write(message); }
    // Returns the next message; one without content if the stream has ended.
    v1::AttachResponse Read() {
      v1::AttachResponse message;
      if (!stream_->Read(&message)) message.Clear();
      return message;
    }
    // Waits for the end of the stream; returns its status.
    absl::Status End() {
      v1::AttachResponse message;
      while (stream_->Read(&message)) {
      }
      const absl::Status end = FromGrpc(stream_->Finish());
      stream_.reset();
      return end;
    }
    const v1::AttachResponse::Greeting& greeting() const { return greeting_; }

   private:
    const std::string uri_;
    const RelayTestFleet::Credential credential_;
    std::unique_ptr<v1::AttachService::Stub> stub_;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::AttachRequest, v1::AttachResponse>> stream_;
    v1::AttachResponse::Greeting greeting_;
  };

  // Returns the reason with which the relay rejects a changed hello.
  std::string Refusal(const FleetName& name,
                      const std::function<void(const Child&, v1::AttachRequest*)>& change) {
    Child child(*this, name);
    v1::AttachRequest hello = child.Hello();
    change(child, &hello);
    child.Write(hello);
    return ReasonOf(child.End());
  }
};

v1::AttachResponse Numbered(int number) {
  v1::AttachResponse message;
  message.mutable_command()->set_job(absl::StrCat(number));
  message.mutable_command()->mutable_command()->set_command(std::string(64 << 10, 'x'));
  return message;
}

v1::AttachRequest RecordOf(const std::string& node, int64_t sequence, size_t bytes) {
  v1::AttachRequest message;
  v1::JobRecord& record = *message.mutable_records()->add_records();
  record.set_job("j");
  record.set_node(node);
  record.set_sequence(sequence);
  record.mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
  record.mutable_output()->set_data(std::string(bytes, 'x'));
  return message;
}

// About 200 KiB.
v1::AttachRequest ManyRecords(const std::string& node, int64_t number) {
  v1::AttachRequest message;
  for (int64_t i = 1; i <= 7; ++i) {
    const v1::AttachRequest one = RecordOf(node, 7 * number + i, 28 << 10);
    *message.mutable_records()->add_records() = one.records().records(0);
  }
  return message;
}

TEST_F(AttachServiceTest, ChildThatNeverReadsLosesItsStream) {
  Child stuck(*this, NodeIdentity{"stuck"});
  Child other(*this, NodeIdentity{"n2"});
  stuck.Write(stuck.Hello());
  other.Write(other.Hello());
  ASSERT_TRUE(Await([&] { return IsAttached("stuck") && IsAttached("n2"); }));
  const auto to_stuck = topology_.Route("stuck");
  ASSERT_TRUE(other.Read().has_welcome());
  for (int i = 0; i < 200; ++i) {
    to_stuck->Send(Numbered(i));
    topology_.Route("n2")->Send(Numbered(i));
    ASSERT_EQ(other.Read().command().job(), absl::StrCat(i));
  }
  ASSERT_TRUE(Await([&] { return !IsAttached("stuck"); }));
  EXPECT_TRUE(IsAttached("n2"));
  EXPECT_THAT(metrics_.Text(), HasSubstr("muster_rpc_calls_total{code=\"RESOURCE_EXHAUSTED\","
                                         "method=\"/muster.v1.AttachService/Attach\"} 1\n"));
  EXPECT_FALSE(stuck.End().ok());
  // It may attach again.
  Child again(*this, NodeIdentity{"stuck"});
  again.Write(again.Hello());
  EXPECT_TRUE(again.Read().has_welcome());
}

TEST_F(AttachServiceTest, ChildWithoutAHelloLosesItsStream) {
  Child child(*this, NodeIdentity{"n1"});
  stream_clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(ReasonOf(child.End()), "NO_HELLO");
}

TEST_F(AttachServiceTest, FloodOfRecordsHoldsUpItsSenderOnly) {
  Child flood(*this, NodeIdentity{"n1"});
  Child other(*this, NodeIdentity{"n2"});
  for (Child* child : {&flood, &other}) {
    child->Write(child->Hello());
    ASSERT_TRUE(child->Read().has_welcome());
  }
  std::jthread writer([&] {
    for (int64_t i = 1; i <= 20 && flood.Write(ManyRecords("n1", i)); ++i) {
    }
  });
  ASSERT_TRUE(Await([&] { return records_.messages("n1") == 1; }));
  // The messages of another child are handled meanwhile; the first child has to wait.
  ASSERT_TRUE(other.Write(RecordOf("n2", 1, 10)));
  ASSERT_TRUE(Await([&] { return records_.messages("n2") == 1; }));
  EXPECT_EQ(records_.messages("n1"), 1);
  records_.AcceptAll();
  ASSERT_TRUE(Await([&] { return records_.messages("n1") == 2; }));
  EXPECT_TRUE(Await([&] {
    records_.AcceptAll();
    return records_.messages("n1") == 20;
  }));
}

TEST_F(AttachServiceTest, RevocationsPrecedePendingCommands) {
  v1::CommandRevocations list;
  list.set_version(7);
  list.add_revoked(UriOf(UserIdentity{"mallory"}));
  trust_.UpdateCommandRevocations(list);
  v1::JobCommand command;
  command.set_job("j1");
  command.add_targets()->set_node("n1");
  ToProto(absl::Minutes(1), command.mutable_begin_within());
  ToProto(absl::Minutes(1), command.mutable_end_within());
  ToProto(absl::Minutes(1), command.mutable_wait_within());
  dispatcher_.Dispatch(command);
  Child child(*this, NodeIdentity{"n1"});
  child.Write(child.Hello());
  EXPECT_TRUE(child.Read().has_welcome());
  EXPECT_EQ(child.Read().revocations().version(), 7);
  EXPECT_EQ(child.Read().command().job(), "j1");
  // A child with this version does not receive it again.
  Child informed(*this, NodeIdentity{"n1"});
  v1::AttachRequest hello = informed.Hello();
  hello.mutable_hello()->set_revocations_version(7);
  informed.Write(hello);
  EXPECT_TRUE(informed.Read().has_welcome());
  EXPECT_EQ(informed.Read().command().job(), "j1");
}

TEST_F(AttachServiceTest, StatementOfAnotherCallerOrRelayIsRejected) {
  using Request = v1::AttachRequest;
  const NodeIdentity n1{"n1"};
  EXPECT_EQ(Refusal(n1,
                    [](const Child&, Request* r) {
                      r->clear_hello();
                      r->mutable_beat();
                    }),
            "INVALID_ATTACHMENT");
  EXPECT_EQ(Refusal(n1, [](const Child&, Request* r) { r->mutable_hello()->clear_statement(); }),
            "STATEMENT_REFUSED");
  EXPECT_EQ(Refusal(n1,
                    [](const Child&, Request* r) {
                      (*r->mutable_hello()->mutable_statement()->mutable_signature())[8] ^= 1;
                    }),
            "STATEMENT_REFUSED");
  EXPECT_EQ(Refusal(n1,
                    [&](const Child& child, Request* r) {
                      *r->mutable_hello()->mutable_statement() = child.Statement(
                          UriOf(n1), UriOf(Relay("r9")), child.greeting().key_sha256());
                    }),
            "STATEMENT_REFUSED");
  EXPECT_EQ(Refusal(n1,
                    [&](const Child& child, Request* r) {
                      *r->mutable_hello()->mutable_statement() = child.Statement(
                          UriOf(n1), child.greeting().relay(), std::string(32, 'k'));
                    }),
            "STATEMENT_REFUSED");
  // A valid statement of another node.
  EXPECT_EQ(
      Refusal(n1, [&](const Child&, Request* r) { *r = Child(*this, NodeIdentity{"n2"}).Hello(); }),
      "STATEMENT_REFUSED");
  EXPECT_EQ(Refusal(n1, [](const Child&, Request* r) { r->mutable_hello()->set_is_relay(true); }),
            "INVALID_ATTACHMENT");
  EXPECT_EQ(Refusal(n1, [](const Child&, Request* r) { r->mutable_hello()->clear_instance_id(); }),
            "INVALID_ATTACHMENT");
  EXPECT_FALSE(IsAttached("n1"));
}

TEST_F(AttachServiceTest, RecordThatIsMalformedOrTooLargeEndsTheStream) {
  for (const v1::AttachRequest& bad : {RecordOf("n1", 0, 1), RecordOf("n1", 1, 100 << 10)}) {
    Child child(*this, NodeIdentity{"n1"});
    child.Write(child.Hello());
    ASSERT_TRUE(child.Read().has_welcome());
    child.Write(bad);
    EXPECT_EQ(ReasonOf(child.End()), "INVALID_JOB_RECORD");
  }
  EXPECT_EQ(records_.messages("n1"), 0);
  EXPECT_EQ(records_.refused, 2);
}

TEST_F(AttachServiceTest, MessageAboutAnotherNodeEndsTheStream) {
  for (const v1::AttachRequest& bad : {RecordOf("n2", 1, 1), RecordOf("n1", 1, 400 << 10), [] {
                                         v1::AttachRequest update;
                                         update.mutable_topology()->set_complete(true);
                                         return update;
                                       }()}) {
    Child child(*this, NodeIdentity{"n1"});
    child.Write(child.Hello());
    ASSERT_TRUE(child.Read().has_welcome());
    child.Write(bad);
    EXPECT_EQ(ReasonOf(child.End()), "INVALID_ATTACHMENT");
  }
  EXPECT_EQ(records_.messages("n1") + records_.messages("n2"), 0);
}

TEST_F(AttachServiceTest, EndStreamsEndsEveryStreamAndRejectsNewOnes) {
  Child attached(*this, NodeIdentity{"n1"});
  attached.Write(attached.Hello());
  ASSERT_TRUE(attached.Read().has_welcome());
  Child greeted(*this, NodeIdentity{"n2"});
  service_.EndStreams();
  EXPECT_EQ(ReasonOf(attached.End()), "RELAY_STOPPING");
  EXPECT_EQ(ReasonOf(greeted.End()), "RELAY_STOPPING");
  EXPECT_EQ(ReasonOf(Child(*this, NodeIdentity{"n3"}).End()), "RELAY_STOPPING") << "a new one";
}

}  // namespace
}  // namespace muster
