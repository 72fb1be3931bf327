// Heartbeats through a relay, to a real status service beside a real aggregator.
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"
#include "services/common/rpc/status.h"
#include "services/relay/testing/proxy_fixture.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_heartbeat_stream.h"
#include "testing/fixtures/test_status.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::PairOf;
using testing::ProxyFixture;
using testing::TestFleet;
using testing::TestHeartbeatStream;
using testing::TestIdentity;
using testing::TestStatus;

constexpr absl::Duration kLostAfter = absl::Seconds(3);
constexpr absl::Duration kLongerThanLost = absl::Seconds(5);

// The stream of a relay, which has sent its first message. The destructor cancels it.
class RelayStream {
 public:
  RelayStream(const std::shared_ptr<grpc::Channel>& channel, const std::string& relay,
              const v1::RelayHeartbeatsRequest& senders = {})
      : stub_(v1::HeartbeatService::NewStub(channel)), stream_(stub_->RelayHeartbeats(&context_)) {
    v1::RelayHeartbeatsRequest hello = senders;
    hello.set_relay(relay);
    stream_->Write(hello);
  }
  ~RelayStream() {
    context_.TryCancel();
    End().IgnoreError();
  }

  bool Read() {
    v1::RelayHeartbeatsResponse response;
    return stream_->Read(&response);
  }
  // Reads the stream to its end.
  absl::Status End() {
    if (stream_ == nullptr) return absl::OkStatus();
    while (Read()) {
    }
    const absl::Status status = FromGrpc(stream_->Finish());
    stream_.reset();
    return status;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::HeartbeatService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::RelayHeartbeatsRequest, v1::RelayHeartbeatsResponse>>
      stream_;
};

class HeartbeatForwardTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"}).id();
    // Seconds in the place of minutes.
    status_.Stop();
    status_.config.heartbeats.interval = absl::Milliseconds(500);
    status_.config.heartbeats.grace = absl::Seconds(1);
    status_.config.heartbeats.lost_after = kLostAfter;
    status_.Start();
    relay_.upstream().Attach("n1", node_);
    relay_.upstream().Attach("r2", child_relay_);
    relay_.Start();
    ConnectUp();
  }

  void ConnectUp() { relay_.ConnectUp(status_.Connect(relay_.identity())); }

  std::shared_ptr<grpc::Channel> ConnectAsRelay() { return relay_.Connect(child_relay_); }

  // Returns the first entry of node n1, which is attached to r2.
  v1::RelayHeartbeatsRequest SenderOfChildRelay() const {
    const Certificate relay = *Certificate::FromPem(child_relay_.chain_pem);
    v1::RelayHeartbeatsRequest message;
    v1::RelayHeartbeatsRequest::Sender& sender = *message.add_senders();
    sender.set_id(1);
    sender.set_uri(*Certificate::FromPem(node_.chain_pem)->Uri());
    sender.set_attach_statement(
        SignAttachStatement(*PrivateKey::FromPem(node_.key_pem), node_.chain_pem, sender.uri(),
                            *relay.Uri(), *relay.Key()->Sha256(), absl::Now() + absl::Minutes(30))
            ->SerializeAsString());
    return message;
  }

  v1::StreamHeartbeatsRequest First(TestHeartbeatStream& stream, const std::string& message) {
    v1::StreamHeartbeatsRequest beat = stream.First();
    v1::Activity& activity = *beat.add_activities();
    activity.mutable_key()->set_run(run_);
    activity.mutable_key()->set_plugin("hostfacts");
    activity.mutable_key()->set_node("n1");
    activity.set_phase(v1::PHASE_WORKING);
    activity.set_message(message);
    return beat;
  }

  v1::RunStatus Await(const std::function<bool(const v1::PairStatus&)>& fits) {
    return status_.Await(run_,
                         [&](const v1::RunStatus& status) { return fits(PairOf(status, "n1")); });
  }

  TestFleet fleet_;
  TestStatus status_{fleet_};
  std::string run_;
  const TestIdentity node_ = fleet_.Issue(NodeIdentity{"n1"});
  const TestIdentity child_relay_ = fleet_.Issue(ServiceIdentity{ServiceRole::kRelay, "r2"});
  ProxyFixture relay_{fleet_};
};

TEST_F(HeartbeatForwardTest, ActivityIsShownAsWithoutRelay) {
  TestHeartbeatStream stream(relay_.Connect(node_));
  const v1::StreamHeartbeatsResponse answer = stream.Send(First(stream, "at it"));
  EXPECT_EQ(answer.sequence(), 1);
  v1::RunStatus status = Await([](const auto& pair) { return pair.detail() == "at it"; });
  EXPECT_EQ(PairOf(status, "n1").presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(PairOf(status, "n1").reason(), v1::REASON_RUNNING);
  v1::StreamHeartbeatsRequest news = stream.Next();
  news.mutable_activities()->CopyFrom(First(stream, "nearly done").activities());
  news.set_sequence(7);
  EXPECT_EQ(stream.Send(news).sequence(), 7);
  Await([](const auto& pair) { return pair.detail() == "nearly done"; });
  v1::StreamHeartbeatsRequest bye = stream.Next();
  bye.set_sequence(8);
  bye.set_goodbye(true);
  EXPECT_TRUE(stream.SendAndEnd(bye).ok());
  status = Await([](const auto& pair) { return pair.presence() == v1::PRESENCE_OFFLINE; });
  EXPECT_EQ(PairOf(status, "n1").presence(), v1::PRESENCE_OFFLINE);
}

TEST_F(HeartbeatForwardTest, HeartbeatsWithoutActivitiesKeepTheSenderOnline) {
  TestHeartbeatStream stream(relay_.Connect(node_));
  stream.Send(First(stream, "at it"));
  Await([](const auto& pair) { return pair.presence() == v1::PRESENCE_ONLINE; });
  const auto is_lost = [&] {
    stream.Send(stream.Next());
    return PairOf(*status_.Get(run_), "n1").presence() != v1::PRESENCE_ONLINE;
  };
  EXPECT_FALSE(testing::Await(is_lost, kLongerThanLost));
}

TEST_F(HeartbeatForwardTest, SilentSenderIsProbedThenLostWithTheRelayNamed) {
  TestHeartbeatStream stream(relay_.Connect(node_));
  stream.Send(First(stream, "at it"));
  // The probe passes through the relay.
  EXPECT_TRUE(stream.Read().probe());
  const v1::RunStatus status =
      Await([](const auto& pair) { return pair.presence() == v1::PRESENCE_LOST; });
  EXPECT_EQ(PairOf(status, "n1").presence(), v1::PRESENCE_LOST);
  EXPECT_THAT(PairOf(status, "n1").detail(), HasSubstr("relay r1 forwards its heartbeats"));
}

TEST_F(HeartbeatForwardTest, RejectedSenderLosesItsStreamOnly) {
  relay_.upstream().Attach("n2", fleet_.Issue(NodeIdentity{"n2"}));
  TestHeartbeatStream good(relay_.Connect(node_));
  good.Send(First(good, "at it"));
  TestHeartbeatStream bad(relay_.Connect(fleet_.Issue(NodeIdentity{"n2"})));
  v1::StreamHeartbeatsRequest beat = bad.First();
  v1::Activity& activity = *beat.add_activities();
  activity.mutable_key()->set_run(run_);
  activity.mutable_key()->set_plugin("nothing");
  activity.set_phase(v1::PHASE_WORKING);
  EXPECT_EQ(ReasonOf(bad.SendAndEnd(beat)), "PAIR_NOT_PLANNED");
  EXPECT_EQ(good.Send(good.Next()).sequence(), 2);
  TestHeartbeatStream other(relay_.Connect(fleet_.Issue(NodeIdentity{"n3"})));
  EXPECT_EQ(ReasonOf(other.SendAndEnd(other.First())), "NOT_ATTACHED");
}

// Both senders share the stream of the relay, which a message above 2 MiB would end.
TEST_F(HeartbeatForwardTest, LargeHeartbeatLeavesOtherSendersOnline) {
  const TestIdentity n2 = fleet_.Issue(NodeIdentity{"n2"});
  relay_.upstream().Attach("n2", n2);
  TestHeartbeatStream other(relay_.Connect(n2));
  v1::StreamHeartbeatsRequest first = First(other, "at it");
  first.mutable_activities(0)->mutable_key()->set_node("n2");
  other.Send(first);
  TestHeartbeatStream large(relay_.Connect(node_));
  v1::StreamHeartbeatsRequest beat = First(large, "at it");
  v1::ReportProgressRequest& progress = *beat.mutable_activities(0)->mutable_progress();
  for (int i = 0; i < 1900; ++i) progress.add_failures(std::string(1024, 'x'));
  large.Send(beat);
  const v1::RunStatus status =
      Await([](const auto& pair) { return pair.progress().failures_size() > 0; });
  EXPECT_EQ(PairOf(status, "n1").progress().failures_size(), 100);
  EXPECT_EQ(PairOf(status, "n1").progress().omitted_failures(), 1800);
  EXPECT_TRUE(testing::Await(
      [&] { return PairOf(*status_.Get(run_), "n2").presence() == v1::PRESENCE_ONLINE; }));
}

TEST_F(HeartbeatForwardTest, HeartbeatAboveTheLimitIsRefused) {
  TestHeartbeatStream stream(relay_.Connect(node_));
  v1::StreamHeartbeatsRequest beat = First(stream, "at it");
  for (int i = 0; i < 300; ++i) {
    *beat.add_activities() = beat.activities(0);
    beat.mutable_activities(i + 1)->mutable_key()->set_plugin(absl::StrCat("p", i));
    beat.mutable_activities(i + 1)->set_message(std::string(1024, 'x'));
  }
  EXPECT_EQ(ReasonOf(stream.SendAndEnd(beat)), "INVALID_HEARTBEAT");
}

TEST_F(HeartbeatForwardTest, UnknownFieldsAreNotForwarded) {
  TestHeartbeatStream stream(relay_.Connect(node_));
  v1::StreamHeartbeatsRequest beat = First(stream, "at it");
  v1::Activity& activity = *beat.mutable_activities(0);
  activity.GetReflection()->MutableUnknownFields(&activity)->AddLengthDelimited(
      900, std::string((2 << 20) - 1024, 'x'));
  stream.Send(beat);
  const v1::RunStatus status = Await([](const auto& pair) { return pair.detail() == "at it"; });
  EXPECT_EQ(PairOf(status, "n1").presence(), v1::PRESENCE_ONLINE);
}

// The peers keep their streams open: only the relay ends them, before the server waits for them.
TEST_F(HeartbeatForwardTest, StopDoesNotWaitForStreams) {
  TestHeartbeatStream stream(relay_.Connect(node_));
  stream.Send(First(stream, "at it"));
  RelayStream branch(ConnectAsRelay(), "r2");
  ASSERT_TRUE(branch.Read());
  relay_.Stop(/*drain=*/absl::Hours(1));
  EXPECT_EQ(ReasonOf(branch.End()), "RELAY_STOPPING");
}

TEST_F(HeartbeatForwardTest, ChildRelayForwardsTheStreamsOfAllItsDescendants) {
  const auto channel = ConnectAsRelay();
  std::vector<std::unique_ptr<RelayStream>> streams;
  for (int i = 0; i < 100; ++i) {
    streams.push_back(std::make_unique<RelayStream>(channel, absl::StrCat("r", 2 + i)));
    ASSERT_TRUE(streams.back()->Read()) << streams.back()->End();
  }
}

TEST_F(HeartbeatForwardTest, RestartedChildRelayWithoutSendersIsConnected) {
  const auto is_doubted = [&] {
    return absl::StrContains(status_.Get(run_)->doubt(), "relay r2 is not connected");
  };
  {
    RelayStream stream(ConnectAsRelay(), "r2", SenderOfChildRelay());
    ASSERT_TRUE(stream.Read());
  }
  EXPECT_TRUE(testing::Await(is_doubted));
  RelayStream stream(ConnectAsRelay(), "r2");
  ASSERT_TRUE(stream.Read());
  EXPECT_TRUE(testing::Await([&] { return !is_doubted(); })) << status_.Get(run_)->doubt();
}

TEST_F(HeartbeatForwardTest, SendersOfDisconnectedRelayAreNotLost) {
  TestHeartbeatStream stream(relay_.Connect(node_));
  stream.Send(First(stream, "at it"));
  Await([](const auto& pair) { return pair.presence() == v1::PRESENCE_ONLINE; });
  relay_.upstream().Cut();
  // The sender continues: the relay answers.
  EXPECT_EQ(stream.Send(stream.Next()).sequence(), 2);
  v1::RunStatus status =
      Await([](const auto& pair) { return pair.reason() == v1::REASON_SEGMENT_LOST; });
  EXPECT_THAT(PairOf(status, "n1").detail(), HasSubstr("relay r1"));
  EXPECT_THAT(status.doubt(), HasSubstr("relay r1 is not connected"));
  const auto is_judged = [&] {
    return PairOf(*status_.Get(run_), "n1").presence() != v1::PRESENCE_UNKNOWN;
  };
  EXPECT_FALSE(testing::Await(is_judged, kLongerThanLost));
  ConnectUp();
  stream.Send(stream.Next());
  status = Await([](const auto& pair) { return pair.presence() == v1::PRESENCE_ONLINE; });
  EXPECT_EQ(PairOf(status, "n1").presence(), v1::PRESENCE_ONLINE);
  // The summary is a quarter of a second old at most.
  EXPECT_TRUE(testing::Await([&] { return status_.Get(run_)->doubt().empty(); }));
}

}  // namespace
}  // namespace muster
