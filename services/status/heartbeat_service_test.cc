// Heartbeats over real mutual TLS: which are accepted, and for whom.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/caller.h"
#include "services/common/rpc/status.h"
#include "services/status/testing/heartbeat_fixture.h"
#include "testing/fixtures/test_heartbeat_stream.h"

namespace muster {
namespace {

using testing::Plugin;
using testing::TestHeartbeatStream;
using testing::TestIdentity;

using HeartbeatServiceTest = testing::HeartbeatFixture;

TEST_F(HeartbeatServiceTest, HeartbeatIsAnsweredWithItsSequenceAndTheInterval) {
  TestHeartbeatStream stream(As("p", "n1"));
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
  TestHeartbeatStream stream(AsNode("n1"));
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

TEST_F(HeartbeatServiceTest, LastActivityOfAPairInAMessageCounts) {
  TestHeartbeatStream stream(AsNode("n1"));
  v1::StreamHeartbeatsRequest first = stream.First();
  for (int i = 0; i < 3; ++i) {
    AddActivity(&first, run_, "p", "n1");
    first.mutable_activities(i)->set_phase(i == 2 ? v1::PHASE_WORKING : v1::PHASE_BLOCKED);
  }
  stream.Send(first);
  EXPECT_EQ(Pair("p", "n1").phase(), v1::PHASE_WORKING);
}

TEST_F(HeartbeatServiceTest, ProcessSendsHeartbeatsForTwoPairsOverTwoStreams) {
  const TestIdentity identity = fleet_.Issue(NodeIdentity{"n1"});
  const auto heartbeat = [&](const std::string& plugin, int64_t sequence, int64_t completed) {
    v1::StreamHeartbeatsRequest heartbeat;
    heartbeat.set_instance_id("i1");
    heartbeat.set_sequence(sequence);
    AddActivity(&heartbeat, run_, plugin, "n1");
    v1::ReportProgressRequest* progress = heartbeat.mutable_activities(0)->mutable_progress();
    progress->set_total(100);
    progress->set_completed(completed);
    return heartbeat;
  };
  TestHeartbeatStream p(status_.Connect(identity));
  TestHeartbeatStream q(status_.Connect(identity));
  p.Send(heartbeat("p", 1, 10));
  q.Send(heartbeat("q", 2, 20));
  // The heartbeat with the later sequence arrives first.
  EXPECT_EQ(q.Send(heartbeat("q", 4, 21)).sequence(), 4);
  EXPECT_EQ(p.Send(heartbeat("p", 3, 11)).sequence(), 3);
  EXPECT_EQ(Pair("p", "n1").progress().completed(), 11);
  EXPECT_EQ(Pair("q", "n1").progress().completed(), 21);
  v1::StreamHeartbeatsRequest goodbye = heartbeat("q", 5, 22);
  goodbye.set_goodbye(true);
  EXPECT_EQ(q.SendAndEnd(goodbye), absl::OkStatus());
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(p.Send(heartbeat("p", 6, 12)).sequence(), 6);
  EXPECT_EQ(Pair("p", "n1").progress().completed(), 12);
  goodbye = heartbeat("p", 7, 13);
  goodbye.set_goodbye(true);
  EXPECT_EQ(p.SendAndEnd(goodbye), absl::OkStatus());
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(HeartbeatServiceTest, HeartbeatForAnotherSenderIsRejected) {
  {
    TestHeartbeatStream stream(As("p", "n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    first.set_node("n2");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "NOT_YOURS");
  }
  {
    TestHeartbeatStream stream(AsNode("n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    first.set_node("n2");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "NOT_YOURS");
  }
  for (const auto& [run, plugin, node] :
       {std::tuple(run_, "q", "n1"), std::tuple(std::string("0123456789abcdef"), "p", "n1")}) {
    TestHeartbeatStream stream(As("p", "n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    AddActivity(&first, run, plugin, node);
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "NOT_YOURS") << run << plugin;
  }
  {
    TestHeartbeatStream stream(AsNode("n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    AddActivity(&first, run_, "p", "n2");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "INVALID_HEARTBEAT");
  }
  EXPECT_EQ(Pair("p", "n2").presence(), v1::PRESENCE_UNSPECIFIED);
}

TEST_F(HeartbeatServiceTest, RunCredentialReachesOnlyItsOwnRun) {
  const std::string other = CreateRun({Plugin("p")});
  TestHeartbeatStream stream(status_.Connect(fleet_.Credential(other, "p", "n1")));
  v1::StreamHeartbeatsRequest first = stream.First();
  AddActivity(&first, run_, "p", "n1");
  EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "NOT_YOURS");
}

TEST_F(HeartbeatServiceTest, HeartbeatForAnUnplannedPairLeavesNoSender) {
  {
    TestHeartbeatStream stream(AsNode("n9"));
    v1::StreamHeartbeatsRequest first = stream.First();
    AddActivity(&first, run_, "p", "n9");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "PAIR_NOT_PLANNED");
  }
  {
    TestHeartbeatStream stream(AsNode("n9"));
    v1::StreamHeartbeatsRequest first = stream.First();
    AddActivity(&first, "0123456789abcdef", "p", "n9");
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "RUN_NOT_FOUND");
  }
  EXPECT_EQ(ReasonOf(GetNode("n9").status()), "NODE_NOT_FOUND");
}

TEST_F(HeartbeatServiceTest, HeartbeatOfAnOperatorIsRejected) {
  TestHeartbeatStream stream(status_.Connect(fleet_.admin()));
  EXPECT_EQ(stream.SendAndEnd(stream.First()).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(HeartbeatServiceTest, MalformedHeartbeatIsRejectedWithTheReason) {
  {
    TestHeartbeatStream stream(As("p", "n1"));
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(stream.Next())), "INVALID_HEARTBEAT");
  }
  {
    TestHeartbeatStream stream(As("p", "n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    for (int i = 0; i < 1001; ++i) first.add_activities();
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "INVALID_HEARTBEAT");
  }
  {
    TestHeartbeatStream stream(As("p", "n1"));
    v1::StreamHeartbeatsRequest first = stream.First();
    first.add_activities()->mutable_progress()->set_completed(-1);
    EXPECT_EQ(ReasonOf(stream.SendAndEnd(first)), "INVALID_PROGRESS");
  }
  {
    TestHeartbeatStream stream(As("p", "n1"));
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
  EXPECT_EQ(ReasonOf(FromGrpc(status)), "NO_READABLE_MESSAGE") << status.error_message();
}

TEST_F(HeartbeatServiceTest, HugeTextsAreTruncatedAndOddOnesAreEscaped) {
  TestHeartbeatStream stream(As("p", "n1"));
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
  TestHeartbeatStream stream(As("p", "n1"));
  v1::StreamHeartbeatsRequest heartbeat = stream.First();
  heartbeat.set_sequence(10);
  stream.Send(heartbeat);
  v1::StreamHeartbeatsRequest late;
  late.set_sequence(9);
  late.add_activities()->set_phase(v1::PHASE_BLOCKED);
  EXPECT_EQ(stream.Send(late).sequence(), 10);
  EXPECT_EQ(Pair("p", "n1").phase(), v1::PHASE_WORKING);
}

TEST_F(HeartbeatServiceTest, UnaryHeartbeatIsAnsweredWithTheInterval) {
  const auto stub = v1::HeartbeatService::NewStub(As("p", "n1"));
  const auto send = [&](const std::string& plugin, const std::string& node) {
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
  EXPECT_EQ(send("p", "n1"), absl::OkStatus());
  EXPECT_EQ(Pair("p", "n1").presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(ReasonOf(send("p", "n2")), "NOT_YOURS");
  EXPECT_EQ(ReasonOf(send("q", "n1")), "NOT_YOURS");
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
  const auto send = [&](const std::string& node) {
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
  EXPECT_EQ(send("n1"), absl::OkStatus());
  EXPECT_EQ(ReasonOf(send("n2")), "NOT_YOURS");
}

}  // namespace
}  // namespace muster
