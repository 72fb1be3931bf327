// Deliveries through a relay: real nodes' certificates, a real aggregator, real mutual TLS.
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "muster/v1/join.grpc.pb.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/client/client.h"
#include "services/common/base/error.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/rpc/limits.h"
#include "services/common/rpc/status.h"
#include "services/relay/testing/proxy_fixture.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_upload.h"

namespace muster {
namespace {

using client::Code;
using testing::Await;
using ::testing::HasSubstr;
using testing::OpenTestUpload;
using testing::ProxyFixture;
using testing::SignTestResult;
using testing::SmallResult;
using testing::TestFleet;
using testing::TestIdentity;
using testing::TestUploadStream;

// Returns the definitions of the plugins p0, p1 and so on.
std::vector<std::string> Plugins(size_t count) {
  std::vector<std::string> plugins;
  for (size_t i = 0; i < count; ++i) {
    plugins.push_back(absl::StrCat("sonobuoy-config: {driver: DaemonSet, plugin-name: p", i,
                                   ", result-format: raw}\nspec: {name: plugin}\n"));
  }
  return plugins;
}

class ResultForwardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = fleet_.CreateRun({"hostfacts", "systemd-logs"}, {"n1", "n2"}).id();
    relay_.upstream().Attach("n1", node_);
    relay_.Start();
    relay_.ConnectUp();
  }

  // Returns a client of the library for node n1, attached to the relay.
  std::unique_ptr<client::Client> MakeClient(const std::string& plugin, bool leave = false) {
    client::Config config;
    config.grpc_targets = {relay_.target()};
    config.run = run_;
    config.plugin = plugin;
    config.node = "n1";
    config.fleet_ca_cert = fleet_.fleet_ca_pem();
    config.client_cert = node_.chain_pem;
    config.client_key = node_.key_pem;
    config.leave_when_spooled = leave;
    client::Status status;
    auto made = client::Client::Create(config, &status);
    EXPECT_NE(made, nullptr) << status.message;
    return made;
  }

  std::string File(const std::string& bytes) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/result");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // As the operator sees it, at the aggregator itself.
  v1::Result Committed(const std::string& plugin, const std::string& node = "n1") {
    v1::GetResultRequest request;
    request.mutable_key()->set_run(run_);
    request.mutable_key()->set_plugin(plugin);
    request.mutable_key()->set_node(node);
    grpc::ClientContext context;
    v1::Result result;
    const grpc::Status status = v1::ResultService::NewStub(fleet_.Connect(fleet_.admin()))
                                    ->GetResult(&context, request, &result);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return result;
  }

  // How many results left the spool with this outcome.
  double Outcomes(const std::string& outcome) {
    const std::string text = relay_.metrics().Text();
    const std::string name =
        absl::StrCat("muster_relay_spool_outcomes_total{outcome=\"", outcome, "\"} ");
    const size_t at = text.find(name);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size()));
  }

  // The aggregator stops, and starts again at another address.
  void CutOff() {
    fleet_.Stop();
    relay_.upstream().Cut();
  }
  void Reconnect() {
    fleet_.Start();
    relay_.ConnectUp();
  }

  TestFleet fleet_;
  std::string run_;
  const TestIdentity node_ = fleet_.Issue(NodeIdentity{"n1"});
  ProxyFixture relay_{fleet_};
};

TEST_F(ResultForwardTest, SmallAndLargeResultsAreForwardedInTheNodesName) {
  EXPECT_EQ(MakeClient("hostfacts")->SubmitFile(File("{}"), {}).status.code, Code::kOk);
  const std::string large = Pattern(5'000'000);
  const client::Delivery delivery = MakeClient("systemd-logs")->SubmitFile(File(large), {});
  EXPECT_EQ(delivery.status.code, Code::kOk) << delivery.status.message;
  const v1::Result result = Committed("systemd-logs");
  EXPECT_EQ(result.outcome(), v1::OUTCOME_GENUINE);
  EXPECT_EQ(result.size(), 5'000'000);
  EXPECT_TRUE(result.delivery().signed_());
  EXPECT_THAT(result.delivery().uri(), HasSubstr("/node/n1"));
  EXPECT_THAT(result.delivery().vouched_by(), HasSubstr("/service/relay/r1"));
  EXPECT_EQ(Committed("hostfacts").outcome(), v1::OUTCOME_GENUINE);
}

TEST_F(ResultForwardTest, UpstreamErrorsArriveUnchanged) {
  const auto stub = v1::ResultService::NewStub(relay_.Connect(node_));
  v1::Result result;
  const auto submit = [&](const v1::SubmitResultRequest& request) {
    grpc::ClientContext context;
    return FromGrpc(stub->SubmitResult(&context, request, &result));
  };
  v1::GetResultRequest get;
  *get.mutable_key() = SmallResult(run_, "nothing", "n1", "").description().key();
  grpc::ClientContext getting;
  const absl::Status unplanned = FromGrpc(stub->GetResult(&getting, get, &result));
  EXPECT_EQ(ReasonOf(unplanned), "PAIR_NOT_PLANNED");
  EXPECT_THAT(NextStepOf(unplanned), HasSubstr("muster status"));
  EXPECT_EQ(ReasonOf(submit(SmallResult(run_, "hostfacts", "n1", "{}"))), "SIGNATURE_REQUIRED");
  EXPECT_EQ(ReasonOf(submit(SmallResult(run_, "hostfacts", "n2", "{}"))), "NOT_YOURS");
  EXPECT_EQ(ReasonOf(submit(SmallResult(run_, "hostfacts", "n1", std::string(70'000, 'x')))),
            "TOO_LARGE_FOR_SUBMIT");
  relay_.upstream().Detach("n1");
  EXPECT_EQ(ReasonOf(submit(SmallResult(run_, "hostfacts", "n1", "{}"))), "NOT_ATTACHED");
  relay_.upstream().Cut();
  relay_.upstream().Attach("n1", node_);
  const absl::Status cut_off = submit(SmallResult(run_, "hostfacts", "n1", "{}"));
  EXPECT_EQ(ReasonOf(cut_off), "RELAY_CUT_OFF");
  EXPECT_TRUE(RetryAfterOf(cut_off));
}

TEST_F(ResultForwardTest, NodeWatchesItsRun) {
  const auto stub = v1::RunService::NewStub(relay_.Connect(node_));
  v1::GetRunRequest get;
  get.set_run(run_);
  v1::Run run;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->GetRun(&context, get, &run).ok());
    EXPECT_EQ(run.plugins_size(), 2);
  }
  v1::WatchRunRequest watch;
  watch.set_run(run_);
  grpc::ClientContext context;
  const auto reader = stub->WatchRun(&context, watch);
  ASSERT_TRUE(reader->Read(&run));
  EXPECT_EQ(run.counts().genuine(), 0);
  ASSERT_EQ(MakeClient("hostfacts")->SubmitFile(File("{}"), {}).status.code, Code::kOk);
  while (run.counts().genuine() == 0) ASSERT_TRUE(reader->Read(&run));
  v1::CancelRunRequest cancel;
  cancel.set_run(run_);
  grpc::ClientContext cancelling;
  ASSERT_TRUE(v1::RunService::NewStub(fleet_.Connect(fleet_.admin()))
                  ->CancelRun(&cancelling, cancel, &run)
                  .ok());
  while (reader->Read(&run)) {
  }
  EXPECT_EQ(run.state(), v1::RUN_STATE_CANCELLED);
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ResultForwardTest, SpooledResultIsCommittedAfterReconnectAndRestart) {
  CutOff();
  const client::Delivery small = MakeClient("hostfacts", true)->SubmitFile(File("{\"a\":1}"), {});
  EXPECT_EQ(small.status.code, Code::kSpooled) << small.status.message;
  EXPECT_THAT(small.status.message, HasSubstr("relay r1 cannot reach its parent"));
  const std::string large = Pattern(3'000'000);
  EXPECT_EQ(MakeClient("systemd-logs", true)->SubmitFile(File(large), {}).status.code,
            Code::kSpooled);
  relay_.Stop();
  // The node has gone meanwhile: its signature is what counts.
  relay_.upstream().Detach("n1");
  relay_.Start();
  Reconnect();
  ASSERT_TRUE(Await([&] { return Committed("systemd-logs").outcome() == v1::OUTCOME_GENUINE; }));
  ASSERT_TRUE(Await([&] { return Committed("hostfacts").outcome() == v1::OUTCOME_GENUINE; }));
  EXPECT_EQ(Committed("systemd-logs").size(), 3'000'000);
  EXPECT_EQ(Committed("systemd-logs").generation(), 1);
  EXPECT_THAT(Committed("systemd-logs").delivery().uri(), HasSubstr("/node/n1"));
  EXPECT_THAT(Committed("systemd-logs").delivery().vouched_by(), HasSubstr("/service/relay/r1"));
  ASSERT_TRUE(Await([&] { return Outcomes("committed") == 2; }));
}

TEST_F(ResultForwardTest, ClientWaitsUntilSpooledResultIsCommitted) {
  CutOff();
  std::jthread back([this] {
    ASSERT_TRUE(Await([&] {
      return relay_.metrics().Text().find("muster_relay_spool_taken_total 1") != std::string::npos;
    }));
    Reconnect();
  });
  const client::Delivery delivery =
      MakeClient("systemd-logs")->SubmitFile(File(Pattern(300'000)), {});
  EXPECT_EQ(delivery.status.code, Code::kOk) << delivery.status.message;
  EXPECT_EQ(delivery.receipt.size, 300'000);
  back.join();
  EXPECT_EQ(Committed("systemd-logs").generation(), 1);
}

TEST_F(ResultForwardTest, ExpiredSpooledResultBecomesErrorResult) {
  relay_.Stop();
  relay_.config.spool_ttl = absl::ZeroDuration();
  relay_.Start();
  CutOff();
  ASSERT_EQ(MakeClient("hostfacts", true)->SubmitFile(File("{}"), {}).status.code, Code::kSpooled);
  Reconnect();
  ASSERT_TRUE(Await([&] { return Committed("hostfacts").outcome() == v1::OUTCOME_ERROR; }));
  const v1::Result expired = Committed("hostfacts");
  EXPECT_THAT(expired.error(), HasSubstr("relay r1 accepted this result at"));
  EXPECT_THAT(expired.delivery().uri(), HasSubstr("/node/n1"));
  EXPECT_THAT(expired.delivery().vouched_by(), HasSubstr("/service/relay/r1"));
  ASSERT_TRUE(Await([&] { return Outcomes("expired") == 1; }));
  EXPECT_EQ(Outcomes("committed"), 0);
  // The node still has it.
  EXPECT_EQ(MakeClient("hostfacts")->SubmitFile(File("{}"), {}).status.code, Code::kOk);
  EXPECT_EQ(Committed("hostfacts").outcome(), v1::OUTCOME_GENUINE);
  relay_.upstream().Cut();
  int audited = 0;
  for (const AuditRecord& record : fleet_.Audit(run_)) {
    if (record.kind != AuditKind::kExpired) continue;
    ++audited;
    EXPECT_THAT(record.actor, HasSubstr("/service/relay/r1"));
    EXPECT_EQ(record.key.node + "/" + record.key.plugin, "n1/hostfacts");
    EXPECT_THAT(record.text, HasSubstr("could not deliver it until"));
  }
  EXPECT_EQ(audited, 1);
}

TEST_F(ResultForwardTest, ExpiredSpooledResultOfSealedRunIsRemoved) {
  relay_.Stop();
  relay_.config.spool_ttl = absl::ZeroDuration();
  relay_.Start();
  relay_.upstream().Cut();
  ASSERT_EQ(MakeClient("hostfacts", true)->SubmitFile(File("{}"), {}).status.code, Code::kSpooled);
  v1::CancelRunRequest cancel;
  cancel.set_run(run_);
  v1::Run run;
  grpc::ClientContext context;
  ASSERT_TRUE(v1::RunService::NewStub(fleet_.Connect(fleet_.admin()))
                  ->CancelRun(&context, cancel, &run)
                  .ok());
  relay_.ConnectUp();
  ASSERT_TRUE(Await([&] { return Outcomes("expired") == 1; }));
  EXPECT_THAT(relay_.metrics().Text(), HasSubstr("muster_relay_spool_entries 0\n"));
}

TEST_F(ResultForwardTest, UnsignedSpooledResultIsRejected) {
  const auto stub = v1::ResultService::NewStub(fleet_.Connect(relay_.identity()));
  v1::OpenUploadRequest open;
  *open.mutable_description() = SmallResult(run_, "hostfacts", "n1", "{}").description();
  v1::OpenUploadResponse opened;
  const auto try_open = [&] {
    grpc::ClientContext context;
    return ReasonOf(FromGrpc(stub->OpenUpload(&context, open, &opened)));
  };
  EXPECT_EQ(try_open(), "SIGNATURE_REQUIRED");
  open.mutable_spooled()->mutable_signature()->set_value("x");
  open.mutable_spooled()->mutable_signature()->set_certificate_chain_pem(node_.chain_pem);
  EXPECT_EQ(try_open(), "PROOF_TOO_OLD");
  open.mutable_spooled()->mutable_accept_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  EXPECT_EQ(try_open(), "INVALID_SIGNATURE");
  // Another identity may not use the upstream either.
  grpc::ClientContext context;
  EXPECT_EQ(
      ReasonOf(FromGrpc(
          v1::ResultService::NewStub(fleet_.Connect(node_))->OpenUpload(&context, open, &opened))),
      "INVALID_SIGNATURE");
}

TEST_F(ResultForwardTest, MachinesJoinThroughTheRelay) {
  v1::JoinRequest request;
  request.set_token_id("00112233445566778899aabbccddeeff");
  v1::NodeCertificate certificate;
  grpc::ClientContext context;
  const absl::Status status = FromGrpc(
      v1::JoinService::NewStub(relay_.ConnectToJoin())->Join(&context, request, &certificate));
  // Whatever the aggregator says of it, it says by way of the relay.
  EXPECT_THAT(relay_.metrics().Text(), HasSubstr("muster_relay_joins_total 1"));
  EXPECT_FALSE(status.ok());
}

// The relay does not know yet that the connection of the earlier streams is lost.
TEST_F(ResultForwardTest, StreamAtTheLimitOfItsNodeTakesOverItsUpload) {
  constexpr size_t kStreamsOfNode = 8;
  run_ = fleet_.CreateRun(Plugins(kStreamsOfNode + 1), {"n1"}).id();
  const auto channel = relay_.Connect(node_);
  std::vector<v1::OpenUploadResponse> opened;
  for (size_t i = 0; i <= kStreamsOfNode; ++i) {
    const auto upload = OpenTestUpload(channel, run_, absl::StrCat("p", i), "n1");
    ASSERT_TRUE(upload.ok()) << upload.status();
    opened.push_back(*upload);
  }
  std::vector<std::unique_ptr<TestUploadStream>> streams;
  for (size_t i = 0; i < kStreamsOfNode; ++i) {
    streams.push_back(std::make_unique<TestUploadStream>(channel, opened[i]));
    streams.back()->SendChunk(0, "hello");
    ASSERT_TRUE(streams.back()->AwaitWritten(5)) << streams.back()->End().status();
  }
  TestUploadStream other(channel, opened[kStreamsOfNode]);
  EXPECT_EQ(ReasonOf(other.End().status()), "OVERLOADED");

  TestUploadStream again(channel, opened[0]);
  EXPECT_EQ(ReasonOf(streams[0]->End().status()), "TAKEN_OVER");
  const std::string body = "hello world";
  again.SendChunk(5, body.substr(5));
  again.SendFinish(body, SignTestResult(node_, run_, "p0", "n1", body));
  const auto end = again.End();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_TRUE(end->has_committed());
}

// It delivers in its own name, also for its descendant relays.
TEST_F(ResultForwardTest, ChildRelayHasMoreUploadsThanANode) {
  constexpr size_t kUploads = kUploadStreamsOfNode + 1;
  run_ = fleet_.CreateRun(Plugins(kUploads), {"n1"}).id();
  const auto channel = relay_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r2"}));
  const std::string body = "hello world";
  std::vector<std::unique_ptr<TestUploadStream>> streams;
  for (size_t i = 0; i < kUploads; ++i) {
    const std::string plugin = absl::StrCat("p", i);
    const v1::SubmitResultRequest result = SmallResult(run_, plugin, "n1", body);
    v1::OpenUploadRequest open;
    *open.mutable_description() = result.description();
    v1::SpooledProof& proof = *open.mutable_spooled();
    *proof.mutable_signature() = SignTestResult(node_, run_, plugin, "n1", body);
    proof.set_size(static_cast<int64_t>(body.size()));
    proof.set_sha256(result.sha256());
    proof.mutable_accept_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
    grpc::ClientContext context;
    v1::OpenUploadResponse opened;
    const absl::Status status =
        FromGrpc(v1::ResultService::NewStub(channel)->OpenUpload(&context, open, &opened));
    ASSERT_TRUE(status.ok()) << status;
    streams.push_back(std::make_unique<TestUploadStream>(channel, opened));
    streams.back()->SendChunk(0, "hello");
    ASSERT_TRUE(streams.back()->AwaitWritten(5)) << streams.back()->End().status();
  }
}

TEST_F(ResultForwardTest, UploadWithoutFirstMessageIsEnded) {
  const auto stub = v1::ResultService::NewStub(relay_.Connect(node_));
  grpc::ClientContext context;
  const auto stream = stub->Upload(&context);
  ASSERT_TRUE(Await([&] { return relay_.stream_clock().waiting_timers() > 0; }));
  relay_.stream_clock().Advance(absl::Seconds(10));
  EXPECT_EQ(ReasonOf(FromGrpc(stream->Finish())), "NO_FIRST_MESSAGE");
}

TEST_F(ResultForwardTest, RelayHeartbeatsWithoutFirstMessageAreEnded) {
  const auto stub = v1::HeartbeatService::NewStub(
      relay_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r2"})));
  grpc::ClientContext context;
  const auto stream = stub->RelayHeartbeats(&context);
  ASSERT_TRUE(Await([&] { return relay_.stream_clock().waiting_timers() > 0; }));
  relay_.stream_clock().Advance(absl::Seconds(10));
  EXPECT_EQ(ReasonOf(FromGrpc(stream->Finish())), "NO_FIRST_MESSAGE");
}

}  // namespace
}  // namespace muster
