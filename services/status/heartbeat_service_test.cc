// Heartbeats over real mutual TLS: a real aggregator, a real status service.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "muster/v1/status.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/beat_stream.h"
#include "testing/fixtures/test_status.h"

namespace muster {
namespace {

using testing::Await;
using testing::BeatStream;
using testing::TestFleet;
using testing::TestIdentity;
using testing::TestStatus;

// Returns a minimal plugin definition.
std::string Plugin(const std::string& name) {
  return absl::StrCat("sonobuoy-config:\n  driver: DaemonSet\n  plugin-name: ", name,
                      "\n  result-format: raw\nspec:\n  name: plugin\n  command: [/bin/true]\n");
}

class HeartbeatServiceTest : public ::testing::Test {
 protected:
  HeartbeatServiceTest() : status_(fleet_), run_(CreateRun({Plugin("p"), Plugin("q")})) {}

  // A run for n1 and n2 that the status service knows.
  std::string CreateRun(const std::vector<std::string>& plugins) {
    const std::string run = fleet_.CreateRun(plugins, {"n1", "n2"}).id();
    status_.Await(run, [](const v1::RunStatus&) { return true; });
    return run;
  }

  std::shared_ptr<grpc::Channel> As(const std::string& plugin, const std::string& node) {
    return status_.Connect(fleet_.Credential(run_, plugin, node));
  }
  std::shared_ptr<grpc::Channel> AsNode(const std::string& node) {
    return status_.Connect(fleet_.Issue(NodeIdentity{node}));
  }

  static void AddActivity(v1::StreamHeartbeatsRequest* beat, const std::string& run,
                          const std::string& plugin, const std::string& node) {
    v1::ResultKey* key = beat->add_activities()->mutable_key();
    key->set_run(run);
    key->set_plugin(plugin);
    key->set_node(node);
  }

  v1::PairStatus Pair(const std::string& plugin, const std::string& node) {
    const auto status = status_.Get(run_);
    EXPECT_TRUE(status.ok()) << status.status();
    if (!status.ok()) return {};
    for (const v1::PairStatus& pair : status->pairs()) {
      if (pair.plugin() == plugin && pair.node() == node) return pair;
    }
    ADD_FAILURE() << "no pair " << plugin << " " << node;
    return {};
  }

  // As an operator sees it.
  absl::StatusOr<v1::Node> GetNode(const std::string& node) {
    grpc::ClientContext context;
    v1::GetNodeRequest request;
    request.set_node(node);
    v1::Node answer;
    const grpc::Status status = v1::StatusService::NewStub(status_.Connect(fleet_.admin()))
                                    ->GetNode(&context, request, &answer);
    if (!status.ok()) return FromGrpc(status);
    return answer;
  }

  void AwaitPresence(const std::string& node, v1::Presence presence) {
    ASSERT_TRUE(Await([&] { return GetNode(node)->presence() == presence; }))
        << node << " is not " << v1::Presence_Name(presence);
  }

  TestFleet fleet_;
  TestStatus status_;
  std::string run_;
};

TEST_F(HeartbeatServiceTest, HeartbeatIsAnsweredWithItsSequenceAndTheInterval) {
  BeatStream stream(As("p", "n1"));
  v1::StreamHeartbeatsResponse answer = stream.Send(stream.First());
  EXPECT_EQ(answer.sequence(), 1);
  EXPECT_EQ(answer.interval().seconds(), 1);
  EXPECT_FALSE(answer.probe());
  answer = stream.Send(stream.Next());
  EXPECT_EQ(answer.sequence(), 2);
  EXPECT_EQ(Pair("p", "n1").presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_ONLINE);
}

TEST_F(HeartbeatServiceTest, NodeSendsHeartbeatsForAllItsPairs) {
  BeatStream stream(AsNode("n1"));
  v1::StreamHeartbeatsRequest first = stream.First();
  AddActivity(&first, run_, "p", "n1");
  AddActivity(&first, run_, "q", "");
  first.mutable_activities(1)->set_phase(v1::PHASE_BLOCKED);
  first.mutable_activities(1)->set_message("waits for <b>\x01 the lease");
  stream.Send(first);
  EXPECT_EQ(Pair("p", "n1").phase(), v1::PHASE_WORKING);
  EXPECT_EQ(Pair("q", "n1").phase(), v1::PHASE_BLOCKED);
  EXPECT_EQ(Pair("q", "n1").reason(), v1::REASON_BLOCKED);
  EXPECT_EQ(Pair("p", "n2").reason(), v1::REASON_NOT_STARTED);
}

TEST_F(HeartbeatServiceTest, HeartbeatForAnotherSenderIsRejected) {
  {
    BeatStream stream(As("p", "n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    first.set_node("n2");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "NOT_YOURS");
  }
  {
    BeatStream stream(AsNode("n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    first.set_node("n2");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "NOT_YOURS");
  }
  for (const auto& [run, plugin, node] :
       {std::tuple(run_, "q", "n1"), std::tuple(std::string("0123456789abcdef"), "p", "n1")}) {
    BeatStream stream(As("p", "n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    AddActivity(&first, run, plugin, node);
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "NOT_YOURS") << run << plugin;
  }
  {
    BeatStream stream(AsNode("n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    AddActivity(&first, run_, "p", "n2");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "INVALID_HEARTBEAT");
  }
  EXPECT_EQ(Pair("p", "n2").presence(), v1::PRESENCE_UNSPECIFIED);
}

TEST_F(HeartbeatServiceTest, RunCredentialReachesOnlyItsOwnRun) {
  const std::string other = CreateRun({Plugin("p")});
  BeatStream stream(status_.Connect(fleet_.Credential(other, "p", "n1")));
  v1::StreamHeartbeatsRequest first = stream.First();
  AddActivity(&first, run_, "p", "n1");
  EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "NOT_YOURS");
}

TEST_F(HeartbeatServiceTest, HeartbeatForAnUnplannedPairLeavesNoSender) {
  {
    BeatStream stream(AsNode("n9"));
    v1::StreamHeartbeatsRequest first = stream.First();
    AddActivity(&first, run_, "p", "n9");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "PAIR_NOT_PLANNED");
  }
  {
    BeatStream stream(AsNode("n9"));
    v1::StreamHeartbeatsRequest first = stream.First();
    AddActivity(&first, "0123456789abcdef", "p", "n9");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "RUN_NOT_FOUND");
  }
  EXPECT_EQ(ReasonOf(GetNode("n9").status()), "NODE_NOT_FOUND");
}

TEST_F(HeartbeatServiceTest, HeartbeatOfAnOperatorIsRejected) {
  BeatStream stream(status_.Connect(fleet_.admin()));
  EXPECT_EQ(stream.SendAndEnd(stream.First()).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(HeartbeatServiceTest, MalformedHeartbeatIsRejectedWithTheReason) {
  {
    BeatStream stream(As("p", "n1"));
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(stream.Next())), "INVALID_HEARTBEAT");
  }
  {
    BeatStream stream(As("p", "n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    for (int i = 0; i < 1001; ++i) first.add_activities();
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "INVALID_HEARTBEAT");
  }
  {
    BeatStream stream(As("p", "n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    first.add_activities()->mutable_progress()->set_completed(-1);
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "INVALID_PROGRESS");
  }
  {
    BeatStream stream(As("p", "n1"));
    stream.Send(stream.First());
    stream.HalfClose();
    EXPECT_EQ(ReasonOf(stream.End()), "INVALID_HEARTBEAT");
  }
}

TEST_F(HeartbeatServiceTest, MalformedBytesEndTheStream) {
  const auto channel = As("p", "n1");
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto call =
      stub.PrepareCall(&context, "/muster.v1.HeartbeatService/StreamHeartbeats", &queue);
  call->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  const grpc::Slice bytes("\x12\x7f");  // instance_id, without its 127 bytes
  call->Write(grpc::ByteBuffer(&bytes, 1), nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  EXPECT_EQ(ReasonOf(FromGrpc(status)), "INVALID_HEARTBEAT") << status.error_message();
}

TEST_F(HeartbeatServiceTest, HugeTextsAreTruncatedAndOddOnesAreEscaped) {
  BeatStream stream(As("p", "n1"));
  v1::StreamHeartbeatsRequest first = stream.First();
  v1::Activity* activity = first.add_activities();
  activity->set_phase(v1::PHASE_BLOCKED);
  activity->set_message(absl::StrCat("\x1b[2J<img src=x>", std::string(1 << 20, 'x')));
  stream.Send(first);
  const v1::PairStatus pair = Pair("p", "n1");
  EXPECT_LT(pair.ByteSizeLong(), 8192);
  EXPECT_EQ(pair.detail().find('\x1b'), std::string::npos);
}

TEST_F(HeartbeatServiceTest, HeartbeatOutOfOrderIsAnsweredAndIgnored) {
  BeatStream stream(As("p", "n1"));
  v1::StreamHeartbeatsRequest beat = stream.First();
  beat.set_sequence(10);
  stream.Send(beat);
  v1::StreamHeartbeatsRequest late;
  late.set_sequence(9);
  late.add_activities()->set_phase(v1::PHASE_BLOCKED);
  EXPECT_EQ(stream.Send(late).sequence(), 10);
  EXPECT_EQ(Pair("p", "n1").phase(), v1::PHASE_WORKING);
}

TEST_F(HeartbeatServiceTest, HeartbeatFromTheFutureIsShownAsSkew) {
  BeatStream stream(AsNode("n1"));
  v1::StreamHeartbeatsRequest first = stream.First();
  first.mutable_time()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(24)));
  stream.Send(first);
  const v1::Node node = *GetNode("n1");
  EXPECT_NEAR(static_cast<double>(node.clock_skew().seconds()), 24 * 3600, 30);
  EXPECT_EQ(node.presence(), v1::PRESENCE_ONLINE);
}

TEST_F(HeartbeatServiceTest, SilentSenderIsProbedAndLate) {
  BeatStream stream(As("p", "n1"));
  stream.Send(stream.First());
  EXPECT_TRUE(stream.Read().probe());
  AwaitPresence("n1", v1::PRESENCE_SUSPECT);
  // This process does not answer, but its kernel acknowledges.
  EXPECT_TRUE(Await([&] { return Pair("p", "n1").reason() == v1::REASON_NOT_RESPONDING; }));
  stream.Send(stream.Next());
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_ONLINE);
}

TEST_F(HeartbeatServiceTest, ClosedConnectionWithoutGoodbyeIsACrash) {
  {
    BeatStream stream(As("p", "n1"));
    stream.Send(stream.First());
  }
  EXPECT_TRUE(Await([&] { return Pair("p", "n1").reason() == v1::REASON_CRASHED; }));
}

TEST_F(HeartbeatServiceTest, StreamWithoutAHeartbeatIsEnded) {
  status_.Stop();
  status_.config.heartbeats.first_within = absl::Milliseconds(200);
  status_.Start();
  BeatStream mute(AsNode("n1"));
  BeatStream stream(AsNode("n2"));
  stream.Send(stream.First());
  EXPECT_EQ(ReasonOf(mute.End()), "NO_FIRST_HEARTBEAT");
  // A stream with a heartbeat may be silent for longer: the service probes it.
  EXPECT_TRUE(stream.Read().probe());
}

TEST_F(HeartbeatServiceTest, GoodbyeEndsTheStreamWithOk) {
  BeatStream stream(As("p", "n1"));
  stream.Send(stream.First());
  v1::StreamHeartbeatsRequest goodbye = stream.Next();
  goodbye.set_goodbye(true);
  EXPECT_EQ(stream.SendAndEnd(goodbye), absl::OkStatus());
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(HeartbeatServiceTest, OlderOfTwoAgentsWithOneIdentityIsEnded) {
  const TestIdentity identity = fleet_.Issue(NodeIdentity{"n1"});
  BeatStream old(status_.Connect(identity));
  v1::StreamHeartbeatsRequest first = old.First("i1");
  first.mutable_uptime()->set_seconds(1000);
  old.Send(first);
  BeatStream young(status_.Connect(identity));
  first = young.First("i2");
  first.mutable_uptime()->set_seconds(10);
  young.Send(first);
  EXPECT_EQ(ReasonOf(old.End()), "DUPLICATE_AGENT");
  EXPECT_TRUE(GetNode("n1")->duplicate_agent());
  BeatStream again(status_.Connect(identity));
  first = again.First("i1");
  first.mutable_uptime()->set_seconds(1001);
  EXPECT_EQ(ReasonOf(again.SendAndEnd(first)), "DUPLICATE_AGENT");
  EXPECT_EQ(young.Send(young.Next()).sequence(), 2);
  EXPECT_TRUE(Await([&] {
    return absl::c_any_of(GetNode("n1")->events(), [](const v1::NodeEvent& event) {
      return absl::StrContains(event.detail(), "one identity");
    });
  }));
}

TEST_F(HeartbeatServiceTest, UnaryHeartbeatIsAnsweredWithTheInterval) {
  const auto stub = v1::HeartbeatService::NewStub(As("p", "n1"));
  const auto beat = [&](const std::string& plugin, const std::string& node) {
    grpc::ClientContext context;
    v1::SendHeartbeatRequest request;
    request.mutable_key()->set_run(run_);
    request.mutable_key()->set_plugin(plugin);
    request.mutable_key()->set_node(node);
    v1::SendHeartbeatResponse response;
    const grpc::Status status = stub->SendHeartbeat(&context, request, &response);
    EXPECT_EQ(response.interval().seconds(), status.ok() ? 1 : 0);
    return FromGrpc(status);
  };
  EXPECT_EQ(beat("p", "n1"), absl::OkStatus());
  EXPECT_EQ(Pair("p", "n1").presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(ReasonOf(beat("p", "n2")), "NOT_YOURS");
  EXPECT_EQ(ReasonOf(beat("q", "n1")), "NOT_YOURS");
  const auto any = v1::HeartbeatService::NewStub(As("p", ""));
  grpc::ClientContext context;
  v1::SendHeartbeatRequest request;
  request.mutable_key()->set_run(run_);
  request.mutable_key()->set_plugin("p");
  request.mutable_key()->set_node("n9");
  v1::SendHeartbeatResponse response;
  EXPECT_EQ(ReasonOf(FromGrpc(any->SendHeartbeat(&context, request, &response))),
            "PAIR_NOT_PLANNED");
}

TEST_F(HeartbeatServiceTest, GatewaySendsHeartbeatsForItsClients) {
  const auto stub = v1::HeartbeatService::NewStub(
      status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kGateway, "test"})));
  const auto beat = [&](const std::string& node) {
    grpc::ClientContext context;
    context.AddMetadata(kForwardedIdentity,
                        absl::StrCat("spiffe://", run_, ".", fleet_.name(), "/plugin/p/node/n1"));
    v1::SendHeartbeatRequest request;
    request.mutable_key()->set_run(run_);
    request.mutable_key()->set_plugin("p");
    request.mutable_key()->set_node(node);
    v1::SendHeartbeatResponse response;
    return FromGrpc(stub->SendHeartbeat(&context, request, &response));
  };
  EXPECT_EQ(beat("n1"), absl::OkStatus());
  EXPECT_EQ(ReasonOf(beat("n2")), "NOT_YOURS");
}

TEST_F(HeartbeatServiceTest, SilentNodeIsUnknownAfterARestart) {
  auto stream = std::make_unique<BeatStream>(AsNode("n1"));
  v1::StreamHeartbeatsRequest first = stream->First();
  AddActivity(&first, run_, "p", "n1");
  stream->Send(first);
  BeatStream other(AsNode("n2"));
  first = other.First();
  AddActivity(&first, run_, "p", "n2");
  first.mutable_activities(0)->mutable_progress()->set_total(8);
  other.Send(first);
  status_.Stop();
  EXPECT_FALSE(stream->End().ok());
  status_.config.heartbeats.grace = absl::Minutes(5);
  status_.Start();
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_UNKNOWN);
  EXPECT_EQ(Pair("p", "n2").progress().total(), 8);
  stream = std::make_unique<BeatStream>(AsNode("n1"));
  first = stream->First();
  first.set_sequence(50);
  AddActivity(&first, run_, "p", "n1");
  stream->Send(first);
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(GetNode("n2")->presence(), v1::PRESENCE_UNKNOWN);
}

}  // namespace
}  // namespace muster
