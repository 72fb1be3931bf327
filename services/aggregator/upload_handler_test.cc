// Upload streams from outside: two streams of one upload over real mutual TLS.
#include "services/aggregator/upload_handler.h"

#include <grpcpp/client_context.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/results.grpc.pb.h"
#include "services/aggregator/testing/test_state.h"
#include "services/common/base/error.h"
#include "services/common/base/metrics.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/forwarding.h"
#include "services/common/rpc/frame_meter.h"
#include "services/common/rpc/rpc_metrics.h"
#include "services/common/rpc/server.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"
#include "testing/fixtures/test_upload.h"

namespace muster {
namespace {

using testing::CallUnary;
using testing::OpenTestUpload;
using testing::SignTestResult;
using testing::SmallResult;
using testing::TakeOverTestUpload;
using testing::TestFleet;
using testing::TestIdentity;
using testing::TestMetadata;
using testing::TestUploadStream;

constexpr char kPlugin[] = "hostfacts";

class UploadHandlerTest : public ::testing::Test {
 protected:
  void Plan(const std::vector<std::string>& nodes) {
    run_ = fleet_.CreateRun({kPlugin}, nodes).id();
  }

  v1::OpenUploadResponse Open(const std::shared_ptr<grpc::Channel>& channel,
                              const std::string& node, const TestMetadata& metadata = {}) {
    const auto opened = OpenTestUpload(channel, run_, kPlugin, node, metadata);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.value_or(v1::OpenUploadResponse());
  }

  // The committed bytes, as an operator reads them.
  absl::StatusOr<std::string> Read(const std::string& node) {
    v1::ReadResultRequest request;
    request.mutable_key()->set_run(run_);
    request.mutable_key()->set_plugin(kPlugin);
    request.mutable_key()->set_node(node);
    grpc::ClientContext context;
    const auto stub = v1::ResultService::NewStub(fleet_.Connect(fleet_.admin()));
    const auto stream = stub->ReadResult(&context, request);
    v1::FileChunk chunk;
    std::string bytes;
    while (stream->Read(&chunk)) bytes += chunk.data();
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return FromGrpc(status);
    return bytes;
  }

  // Delivers what is left of `body` on `stream`, which has `offset` of it.
  static absl::Status Deliver(TestUploadStream& stream, int64_t offset, const std::string& body,
                              const v1::Signature& signature = {}) {
    stream.SendChunk(offset, body.substr(static_cast<size_t>(offset)));
    stream.SendFinish(body, signature);
    ASSIGN_OR_RETURN(const auto last, stream.End());
    return last.has_committed() ? absl::OkStatus() : absl::UnknownError("not committed");
  }

  std::string UriOf(const std::string& path) {
    return absl::StrCat("spiffe://", fleet_.name(), "/", path);
  }

  // The metadata with which a relay calls for `node`.
  TestMetadata ForwardedFor(const std::string& node, const TestIdentity& identity) {
    const auto statement = SignAttachStatement(
        *PrivateKey::FromPem(identity.key_pem), identity.chain_pem, UriOf("node/" + node),
        UriOf("service/relay/r1"), std::string(32, 'k'), absl::Now() + absl::Minutes(30));
    return {{kForwardedIdentity, UriOf("node/" + node)},
            {kAttachStatement, statement->SerializeAsString()}};
  }

  TestFleet fleet_;
  std::string run_;
  const std::string body_ = Pattern(200'000);
};

TEST_F(UploadHandlerTest, SecondStreamOfTheSameEpochTakesOver) {
  Plan({"n1"});
  const auto channel = fleet_.Connect(fleet_.Issue(NodeIdentity{"n1"}));
  const v1::OpenUploadResponse opened = Open(channel, "n1");
  const auto second = TakeOverTestUpload(channel, opened, body_);
  EXPECT_EQ(Deliver(*second, 150'000, body_), absl::OkStatus());
  const auto stored = Read("n1");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(*stored == body_);
}

TEST_F(UploadHandlerTest, AcknowledgedResultStaysWhenTwoStreamsFinishAtOnce) {
  constexpr int kNodes = 40;
  std::vector<std::string> nodes;
  for (int i = 0; i < kNodes; ++i) nodes.push_back(absl::StrCat("n", i));
  Plan(nodes);
  int committed = 0;
  for (const std::string& node : nodes) {
    const TestIdentity identity = fleet_.Issue(NodeIdentity{node});
    const std::shared_ptr<grpc::Channel> channels[] = {fleet_.Connect(identity),
                                                       fleet_.Connect(identity)};
    const v1::OpenUploadResponse opened = Open(channels[0], node);
    absl::Status outcomes[2];
    {
      std::vector<std::jthread> senders;
      for (int i = 0; i < 2; ++i) {
        senders.emplace_back([&, i] {
          TestUploadStream stream(channels[i], opened);
          outcomes[i] = Deliver(stream, 0, body_);
        });
      }
    }
    if (outcomes[0].ok() || outcomes[1].ok()) ++committed;
    const auto stored = Read(node);
    ASSERT_TRUE(stored.ok()) << node << ": " << stored.status();
    EXPECT_TRUE(*stored == body_);
  }
  EXPECT_EQ(committed, kNodes);
  EXPECT_EQ(fleet_.WaitForEnd(run_).state(), v1::RUN_STATE_COMPLETE);
}

TEST_F(UploadHandlerTest, UploadContinuesAfterABadSignature) {
  Plan({"n1"});
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  const auto channel = fleet_.Connect(node);
  {
    TestUploadStream stream(channel, Open(channel, "n1"));
    const auto signature = SignTestResult(node, run_, kPlugin, "n1", "other bytes");
    EXPECT_EQ(ReasonOf(Deliver(stream, 0, body_, signature)), "INVALID_SIGNATURE");
  }
  const v1::OpenUploadResponse again = Open(channel, "n1");
  EXPECT_EQ(again.offset(), 200'000);
  TestUploadStream stream(channel, again);
  stream.SendFinish(body_, SignTestResult(node, run_, kPlugin, "n1", body_));
  const auto last = stream.End();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(last->committed().delivery().signed_());
  EXPECT_TRUE(Read("n1").value_or("") == body_);
}

// The empty lines are no fault of the certificates: only their size is.
TEST_F(UploadHandlerTest, CertificatesOfASignerAboveTheirLimitAreRefused) {
  Plan({"n1"});
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  const auto channel = fleet_.Connect(node);
  for (const bool is_signed : {true, false}) {
    const auto signature_of = [&](const std::string& body) {
      v1::Signature signature = SignTestResult(node, run_, kPlugin, "n1", body);
      if (!is_signed) signature.clear_value();
      signature.mutable_certificate_chain_pem()->append(64 * 1024, '\n');
      return signature;
    };
    TestUploadStream stream(channel, Open(channel, "n1"));
    const absl::Status upload = Deliver(stream, 0, body_, signature_of(body_));
    EXPECT_TRUE(absl::IsInvalidArgument(upload)) << upload;
    EXPECT_EQ(ReasonOf(upload), "INVALID_SIGNATURE");
    v1::SubmitResultRequest request = SmallResult(run_, kPlugin, "n1", "content");
    *request.mutable_signature() = signature_of("content");
    const absl::Status small =
        CallUnary<v1::ResultService>(channel, &v1::ResultService::Stub::SubmitResult, request)
            .status();
    EXPECT_TRUE(absl::IsInvalidArgument(small)) << small;
    EXPECT_EQ(ReasonOf(small), "INVALID_SIGNATURE");
  }
  EXPECT_FALSE(Read("n1").ok());
}

TEST_F(UploadHandlerTest, StreamOfAnotherCallerIsRefused) {
  Plan({"n1"});
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  const auto as_node = fleet_.Connect(node);
  const auto as_relay = fleet_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"}));
  const TestMetadata forwarded = ForwardedFor("n1", node);

  const v1::OpenUploadResponse direct = Open(as_node, "n1");
  TestUploadStream own(as_node, direct);
  own.SendChunk(0, body_.substr(0, 100'000));
  ASSERT_TRUE(own.AwaitWritten(100'000));
  TestUploadStream stranger(as_relay, direct);
  EXPECT_EQ(ReasonOf(Deliver(stranger, 0, Pattern(70'000))), "UPLOAD_NOT_FOUND");
  TestUploadStream detour(as_relay, direct, forwarded);
  EXPECT_EQ(ReasonOf(Deliver(detour, 0, Pattern(70'000))), "UPLOAD_NOT_FOUND");
  // The refused streams did not end the node's own.
  own.SendChunk(100'000, body_.substr(100'000, 50'000));
  ASSERT_TRUE(own.AwaitWritten(150'000));

  // Not by a relay while the node delivers.
  const auto open_by_relay = [&] {
    return OpenTestUpload(as_relay, run_, kPlugin, "n1", forwarded);
  };
  EXPECT_EQ(ReasonOf(open_by_relay().status()), "UPLOAD_IN_USE");
  own.Cancel();
  v1::OpenUploadResponse relayed;
  ASSERT_TRUE(testing::Await([&] {
    const auto opened = open_by_relay();
    if (opened.ok()) relayed = *opened;
    return opened.ok();
  }));
  TestUploadStream shortcut(as_node, relayed);
  EXPECT_EQ(ReasonOf(Deliver(shortcut, 150'000, body_)), "UPLOAD_NOT_FOUND");
  TestUploadStream right(as_relay, relayed, forwarded);
  EXPECT_EQ(Deliver(right, 150'000, body_, SignTestResult(node, run_, kPlugin, "n1", body_)),
            absl::OkStatus());
  EXPECT_TRUE(Read("n1").value_or("") == body_);
}

// Serves Upload alone.
class UploadOnly : public v1::ResultService::CallbackService {
 public:
  UploadOnly(const RpcRuntime& runtime, Uploads& uploads) : runtime_(runtime), uploads_(uploads) {}

  grpc::ServerBidiReactor<v1::UploadRequest, v1::UploadResponse>* Upload(
      grpc::CallbackServerContext* context) override {
    return UploadHandler::Start(runtime_, context, uploads_, budget_);
  }

 private:
  const RpcRuntime runtime_;
  Uploads& uploads_;
  ReadAheadBudget budget_{1 << 20};
};

// A server with room for one upload stream, whose timers the test moves.
class SmallUploadHandlerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    state_.Plan({"n1", "n2"});
    const TestIdentity identity = fleet_.Issue(ServiceIdentity{ServiceRole::kAggregator, "small"});
    ASSERT_TRUE(WriteFileAtomically(folder_ / "key.pem", identity.key_pem).ok());
    ASSERT_TRUE(WriteFileAtomically(folder_ / "cert.pem", identity.chain_pem).ok());
    ASSERT_TRUE(WriteFileAtomically(folder_ / "ca.pem", fleet_.fleet_ca_pem()).ok());
    RpcServerOptions options;
    options.listen = "127.0.0.1:0";
    options.health_listen = "127.0.0.1:0";
    options.certificate_folder = folder_ / ".";
    auto server =
        RpcServer::Start(std::move(options), callers_, canceller_, rpc_metrics_, {&service_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::shared_ptr<grpc::Channel> Connect(const TestIdentity& identity) {
    return MakeChannel(absl::StrCat("127.0.0.1:", server_->port()),
                       MakeChannelCredentials(ChannelIdentity{fleet_.name(), fleet_.fleet_ca_pem(),
                                                              identity.chain_pem, identity.key_pem},
                                              {ServiceRole::kAggregator}),
                       true);
  }

  // Opens an upload of `node`.
  v1::OpenUploadResponse Open(const std::string& node) {
    const auto upload = testing::TestState::OpenAndWait(uploads_, Opening(KeyOf(node), "").upload,
                                                        {{fleet_.name(), NodeIdentity{node}}, {}});
    EXPECT_TRUE(upload.ok()) << upload.status();
    v1::OpenUploadResponse opened;
    if (!upload.ok()) return opened;
    opened.set_upload_id(upload->id);
    opened.set_epoch(upload->epoch);
    opened.set_offset(upload->offset);
    return opened;
  }

  TestFleet fleet_;
  testing::TestState state_;
  TempFolder folder_;
  Metrics metrics_;
  Executor disk_{{"disk", 1, 100}};
  Executor executor_{{"request", 1, 100}};
  ResultCommitter committer_{state_.store(),       state_.blobs(), executor_,
                             state_.clock,         fleet_.name(),  state_.root().certificate(),
                             state_.revocations(), metrics_};
  Uploads uploads_{state_.store(), state_.blobs(),   committer_,        disk_,
                   state_.clock,   state_.streams(), {.max_streams = 1}};
  RpcMetrics rpc_metrics_{metrics_};
  CallerResolver callers_{fleet_.name(), SystemClock()};
  CallCanceller canceller_;
  UploadOnly service_{
      {&callers_, &executor_, &canceller_, &rpc_metrics_, &state_.clock, &state_.streams()},
      uploads_};
  std::unique_ptr<RpcServer> server_;
};

TEST_F(SmallUploadHandlerTest, SilentStreamsAreNotCountedAndEndAfterTenSeconds) {
  const auto channel = Connect(fleet_.Issue(NodeIdentity{"n1"}));
  const auto stub = v1::ResultService::NewStub(channel);
  constexpr int kSilent = 20;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReaderWriter<v1::UploadRequest, v1::UploadResponse>>>
      silent;
  for (int i = 0; i < kSilent; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    silent.push_back(stub->Upload(contexts.back().get()));
  }

  TestUploadStream stream(channel, Open("n1"));
  stream.SendChunk(0, "hello");
  ASSERT_TRUE(stream.AwaitWritten(5)) << stream.End().status();
  // One more would be too many.
  TestUploadStream second(Connect(fleet_.Issue(NodeIdentity{"n2"})), Open("n2"));
  EXPECT_EQ(ReasonOf(second.End().status()), "TOO_MANY_STREAMS");

  ASSERT_TRUE(testing::Await([&] { return state_.clock.waiting_timers() >= kSilent; }));
  state_.clock.Advance(absl::Seconds(10));
  for (const auto& call : silent) {
    EXPECT_EQ(ReasonOf(FromGrpc(call->Finish())), "NO_FIRST_MESSAGE");
  }
}

// The client sends chunks and reads no acknowledgement, until one of them cannot be sent.
TEST_F(SmallUploadHandlerTest, StuckReaderIsCancelledAndItsUploadIsResumed) {
  const TestIdentity node = fleet_.Issue(NodeIdentity{"n1"});
  TestUploadStream stuck(Connect(node), Open("n1"));
  constexpr int kChunks = 20'000;            // their acknowledgements exceed the window of HTTP/2
  const std::string chunk(kSmallData, 'x');  // smaller ones are limited to fewer a second
  const absl::Time limit = absl::Now() + absl::Seconds(60);
  const auto later = [] { return SystemClock().MonotonicNow() + absl::Seconds(31); };
  int64_t sent = 0;
  do {  // a fast server has fewer acknowledgements than chunks
    for (int i = 0; i < kChunks; ++i) stuck.SendChunk(sent++ * chunk.size(), chunk);
  } while (canceller_.CancelStuck(later(), absl::Seconds(30)) == 0 && absl::Now() < limit);
  EXPECT_EQ(stuck.End().status().code(), absl::StatusCode::kCancelled);

  const v1::OpenUploadResponse resumed = Open("n1");
  EXPECT_GT(resumed.offset(), 0);
  TestUploadStream stream(Connect(node), resumed);
  stream.SendChunk(resumed.offset(), "hello");
  EXPECT_TRUE(stream.AwaitWritten(resumed.offset() + 5)) << stream.End().status();
}

}  // namespace
}  // namespace muster
