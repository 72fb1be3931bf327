// Deliveries through a relay: real nodes' certificates, a real aggregator, real mutual TLS.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
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
#include "services/relay/testing/forward_fixture.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_upload.h"

namespace muster {
namespace {

using client::Code;
using testing::Await;
using ::testing::HasSubstr;
using testing::OpenTestUpload;
using testing::SignTestResult;
using testing::SmallResult;
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

class ResultForwardTest : public testing::ForwardTestBase {};

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
