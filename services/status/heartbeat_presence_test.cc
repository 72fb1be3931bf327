// The presence of senders that fall silent, close their stream or return, over real mutual TLS.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "muster/v1/heartbeats.pb.h"
#include "muster/v1/status.pb.h"
#include "services/common/base/error.h"
#include "services/common/rpc/status.h"
#include "services/status/testing/heartbeat_fixture.h"
#include "testing/fixtures/test_heartbeat_stream.h"

namespace muster {
namespace {

using testing::TestHeartbeatStream;
using testing::TestIdentity;

using HeartbeatPresenceTest = testing::HeartbeatFixture;

TEST_F(HeartbeatPresenceTest, HeartbeatFromTheFutureIsShownAsSkew) {
  TestHeartbeatStream stream(AsNode("n1"));
  v1::StreamHeartbeatsRequest first = stream.First();
  first.mutable_time()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Hours(24)));
  stream.Send(first);
  const v1::Node node = *GetNode("n1");
  EXPECT_NEAR(static_cast<double>(node.clock_skew().seconds()), 24 * 3600, 30);
  EXPECT_EQ(node.presence(), v1::PRESENCE_ONLINE);
}

TEST_F(HeartbeatPresenceTest, SilentSenderIsProbedAndLate) {
  TestHeartbeatStream stream(As("p", "n1"));
  stream.Send(stream.First());
  EXPECT_TRUE(stream.Read().probe());
  AwaitPresence("n1", v1::PRESENCE_SUSPECT);
  // This process does not answer, but its kernel acknowledges.
  Await("not responding", [&] { return Pair("p", "n1").reason() == v1::REASON_NOT_RESPONDING; });
  stream.Send(stream.Next());
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_ONLINE);
}

TEST_F(HeartbeatPresenceTest, ClosedConnectionWithoutGoodbyeIsACrash) {
  {
    TestHeartbeatStream stream(As("p", "n1"));
    stream.Send(stream.First());
  }
  Await("crashed", [&] { return Pair("p", "n1").reason() == v1::REASON_CRASHED; });
}

TEST_F(HeartbeatPresenceTest, StreamWithoutAHeartbeatIsEnded) {
  status_.Stop();
  status_.config.heartbeats.first_within = absl::Milliseconds(200);
  status_.Start();
  TestHeartbeatStream mute(AsNode("n1"));
  TestHeartbeatStream stream(AsNode("n2"));
  stream.Send(stream.First());
  EXPECT_EQ(ReasonOf(mute.End()), "NO_FIRST_HEARTBEAT");
  // One that has begun may be silent for longer: it is asked.
  EXPECT_TRUE(stream.Read().probe());
}

TEST_F(HeartbeatPresenceTest, StreamOfARelayWithoutAFirstMessageIsEnded) {
  status_.Stop();
  status_.config.heartbeats.first_within = absl::Milliseconds(200);
  status_.Start();
  const auto stub = v1::HeartbeatService::NewStub(
      status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"})));
  grpc::ClientContext mute_context;
  const auto mute = stub->RelayHeartbeats(&mute_context);
  v1::RelayHeartbeatsResponse response;
  EXPECT_FALSE(mute->Read(&response));
  EXPECT_EQ(ReasonOf(FromGrpc(mute->Finish())), "NO_FIRST_HEARTBEAT");
}

TEST_F(HeartbeatPresenceTest, GoodbyeEndsTheStreamWithOk) {
  TestHeartbeatStream stream(As("p", "n1"));
  stream.Send(stream.First());
  v1::StreamHeartbeatsRequest goodbye = stream.Next();
  goodbye.set_goodbye(true);
  EXPECT_EQ(stream.SendAndEnd(goodbye), absl::OkStatus());
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(HeartbeatPresenceTest, OlderOfTwoAgentsWithOneIdentityIsEnded) {
  const TestIdentity identity = fleet_.Issue(NodeIdentity{"n1"});
  TestHeartbeatStream old(status_.Connect(identity));
  v1::StreamHeartbeatsRequest first = old.First("i1");
  first.mutable_uptime()->set_seconds(1000);
  old.Send(first);
  TestHeartbeatStream young(status_.Connect(identity));
  first = young.First("i2");
  first.mutable_uptime()->set_seconds(10);
  young.Send(first);
  EXPECT_EQ(ReasonOf(old.End()), "DUPLICATE_AGENT");
  EXPECT_TRUE(GetNode("n1")->duplicate_agent());
  TestHeartbeatStream again(status_.Connect(identity));
  first = again.First("i1");
  first.mutable_uptime()->set_seconds(1001);
  EXPECT_EQ(ReasonOf(again.SendAndEnd(first)), "DUPLICATE_AGENT");
  EXPECT_EQ(young.Send(young.Next()).sequence(), 2);
  Await("written down", [&] {
    const v1::Node node = *GetNode("n1");
    for (const v1::NodeEvent& event : node.events()) {
      if (event.detail().find("one identity") != std::string::npos) return true;
    }
    return false;
  });
}

// A relay could hide that another one is disconnected, or claim it of one that does not exist.
TEST_F(HeartbeatPresenceTest, RelayDoesNotSpeakForAnotherWithoutItsSenders) {
  const auto channel = status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"}));
  for (const std::string name : {"r2", "r1"}) {
    grpc::ClientContext context;
    const auto stream = v1::HeartbeatService::NewStub(channel)->RelayHeartbeats(&context);
    v1::RelayHeartbeatsRequest hello;
    hello.set_relay(name);
    ASSERT_TRUE(stream->Write(hello));
    v1::RelayHeartbeatsResponse response;
    ASSERT_TRUE(stream->Read(&response));
    stream->WritesDone();
    ASSERT_EQ(ReasonOf(FromGrpc(stream->Finish())), "NO_READABLE_MESSAGE");
    if (name == "r2") continue;
    Await("the end of the stream of r1",
          [&] { return absl::StrContains(status_.Get(run_)->doubt(), "relay r1"); });
    EXPECT_FALSE(absl::StrContains(status_.Get(run_)->doubt(), "relay r2"));
  }
}

// Each statement is forged.
v1::RelayHeartbeatsRequest Forged(const std::string& fleet, int senders) {
  v1::RelayHeartbeatsRequest message;
  message.set_relay("r1");
  for (int id = 1; id <= senders; ++id) {
    auto& sender = *message.add_senders();
    sender.set_id(id);
    sender.set_uri(absl::StrCat("spiffe://", fleet, "/node/n", id));
    sender.set_attach_statement(absl::StrCat("forged ", id));
  }
  return message;
}

TEST_F(HeartbeatPresenceTest, SendersOfALargeMessageAreHandledInTurns) {
  const auto stub = v1::HeartbeatService::NewStub(
      status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"})));
  grpc::ClientContext context;
  const auto stream = stub->RelayHeartbeats(&context);
  const v1::RelayHeartbeatsRequest message = Forged(fleet_.name(), 500);
  ASSERT_TRUE(stream->Write(message));
  v1::RelayHeartbeatsResponse response;
  int refused = 0;
  int answers = 0;
  for (; refused < 500 && stream->Read(&response); ++answers) refused += response.refused_size();
  EXPECT_EQ(refused, 500);
  EXPECT_GT(answers, 1);
  stream->WritesDone();
  EXPECT_EQ(ReasonOf(FromGrpc(stream->Finish())), "NO_READABLE_MESSAGE");
}

TEST_F(HeartbeatPresenceTest, RelayWithManyForgedStatementsLosesItsStreams) {
  const auto stub = v1::HeartbeatService::NewStub(
      status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"})));
  const v1::RelayHeartbeatsRequest message = Forged(fleet_.name(), 600);
  for (int streams = 0; streams < 2; ++streams) {
    grpc::ClientContext context;
    const auto stream = stub->RelayHeartbeats(&context);
    v1::RelayHeartbeatsResponse response;
    bool open = true;
    for (int messages = 0; open && messages < 20; ++messages) {
      open = stream->Write(message);
      for (int refused = 0; open && refused < 600; refused += response.refused_size()) {
        open = stream->Read(&response);
      }
    }
    EXPECT_FALSE(open);
    EXPECT_EQ(ReasonOf(FromGrpc(stream->Finish())), "TOO_MANY_INVALID_STATEMENTS");
  }
}

// A relay that is stopped keeps its connection.
TEST_F(HeartbeatPresenceTest, ConnectedRelayThatSendsNothingIsDoubtedUntilItsNextMessage) {
  const auto stub = v1::HeartbeatService::NewStub(
      status_.Connect(fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r1"})));
  grpc::ClientContext context;
  const auto stream = stub->RelayHeartbeats(&context);
  v1::RelayHeartbeatsRequest message;
  message.set_relay("r1");
  ASSERT_TRUE(stream->Write(message));
  Await("silence", [&] {
    return absl::StrContains(status_.Get(run_)->doubt(), "relay r1 is connected but silent");
  });
  ASSERT_TRUE(stream->Write(v1::RelayHeartbeatsRequest()));
  Await("return", [&] { return !absl::StrContains(status_.Get(run_)->doubt(), "relay r1"); });
  context.TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(HeartbeatPresenceTest, SilentNodeIsUnknownAfterARestart) {
  auto stream = std::make_unique<TestHeartbeatStream>(AsNode("n1"));
  v1::StreamHeartbeatsRequest first = stream->First();
  AddActivity(&first, run_, "p", "n1");
  stream->Send(first);
  TestHeartbeatStream other(AsNode("n2"));
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
  stream = std::make_unique<TestHeartbeatStream>(AsNode("n1"));
  first = stream->First();
  first.set_sequence(50);
  AddActivity(&first, run_, "p", "n1");
  stream->Send(first);
  EXPECT_EQ(GetNode("n1")->presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(GetNode("n2")->presence(), v1::PRESENCE_UNKNOWN);
}

}  // namespace
}  // namespace muster
