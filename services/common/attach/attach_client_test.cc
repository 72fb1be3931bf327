#include "services/common/attach/attach_client.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/attach/fake_parent.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/errors/relay.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AttachClientTest : public ::testing::Test {
 protected:
  void Start(const std::vector<uint16_t>& ports) {
    AttachClientOptions options;
    for (const uint16_t port : ports) options.targets.push_back({"relay", port});
    options.uri = "spiffe://fleet.test/node/n1";
    client_ = std::make_unique<AttachClient>(std::move(options), delegate_,
                                             AttachRuntime{clock_, clock_, executor_},
                                             std::unique_ptr<ParentConnector>(connector_));
    client_->Start();
    executor_.AwaitIdle();
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }
  // The parent accepts this child, or offers to.
  void Accept(uint16_t port, bool connected = true) {
    connector_->at(port).Greet();
    connector_->at(port).Welcome(connected);
    executor_.AwaitIdle();
  }
  void End(uint16_t port, absl::Status why = absl::UnavailableError("gone")) {
    connector_->at(port).End(std::move(why));
    executor_.AwaitIdle();
  }
  // Attaches to the second parent, after the first was not there. Then it is probed.
  void AttachToTheSecondAndProbe() {
    Start({1, 2});
    End(1);
    Accept(2);
    for (int i = 0; i < 1000 && connector_->connections(1) < 2; ++i) {
      connector_->at(2).Deliver({});
      connector_->at(2).Drain();
      Advance(absl::Seconds(1));
    }
    ASSERT_EQ(connector_->connections(1), 2u);
    EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("welcome"));
  }

  FakeClock clock_;
  Executor executor_{{"test", 1, 16}};
  RecordingDelegate delegate_;
  FakeConnector* connector_ = new FakeConnector(clock_);  // owned by client_
  std::unique_ptr<AttachClient> client_;
};

TEST_F(AttachClientTest, AttachesToTheFirstParent) {
  Start({1, 2});
  EXPECT_FALSE(client_->attached());
  EXPECT_EQ(client_->target(), "");
  Accept(1);
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(client_->target(), "relay:1");
  EXPECT_EQ(connector_->connections(2), 0u);
  EXPECT_TRUE(client_->Send({}));
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("welcome"));
}

TEST_F(AttachClientTest, AllParentsAreTriedBeforeTheFirstWait) {
  Start({1, 2});
  End(1);
  EXPECT_EQ(connector_->connections(2), 1u);
  End(2);
  EXPECT_EQ(connector_->connections(1), 1u);
  Advance(absl::Milliseconds(999));
  EXPECT_EQ(connector_->connections(1), 1u) << "the shortest wait is a second";
  Advance(absl::Seconds(4));
  EXPECT_EQ(connector_->connections(1), 2u) << "the first ceiling is five seconds";
  EXPECT_THAT(delegate_.TakeCalls(), IsEmpty());
}

TEST_F(AttachClientTest, WaitIsAtLeastTheOneThatTheParentAsksFor) {
  Start({1});
  End(1, WithRetryAfter(MakeError(absl::StatusCode::kResourceExhausted, "FULL", "full", "wait"),
                        absl::Seconds(100)));
  Advance(absl::Seconds(99));
  EXPECT_EQ(connector_->connections(1), 1u);
  Advance(absl::Seconds(7));  // the jitter is at most 5 s
  EXPECT_EQ(connector_->connections(1), 2u);
}

TEST_F(AttachClientTest, ProcessWithAYoungerDuplicateTriesNoOtherParent) {
  Start({1, 2});
  End(1, errors::DuplicateProcess("n1"));
  EXPECT_EQ(connector_->connections(2), 0u);
  Advance(absl::Seconds(29));
  EXPECT_EQ(connector_->connections(1), 1u);
  Advance(absl::Seconds(6));
  EXPECT_EQ(connector_->connections(1), 2u) << "the other process may have ended";
  EXPECT_EQ(connector_->connections(2), 0u);
}

TEST_F(AttachClientTest, ParentThatDoesNotAnswerIsLeft) {
  Start({1, 2});
  Advance(absl::Seconds(22));
  EXPECT_TRUE(connector_->at(1).cancelled());
  EXPECT_EQ(connector_->connections(2), 1u);
}

TEST_F(AttachClientTest, SettledAttachmentThatIsLostIsFollowedByTheFirstParent) {
  Start({1, 2, 3});
  End(1);
  Accept(2);
  Advance(absl::Seconds(10));
  End(2);
  EXPECT_FALSE(client_->attached());
  EXPECT_EQ(client_->target(), "relay:2") << "the last one";
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("welcome", "lost"));
  Advance(absl::Seconds(5));
  EXPECT_EQ(connector_->connections(1), 2u);
  EXPECT_EQ(connector_->connections(3), 0u);
}

TEST_F(AttachClientTest, ParentThatMisbehavedIsFollowedByTheNextOne) {
  Start({1, 2});
  Accept(1);
  Advance(absl::Seconds(10));
  End(1, errors::RelayRefused("its list is forged"));
  EXPECT_EQ(connector_->connections(1), 1u);
  EXPECT_EQ(connector_->connections(2), 1u);
}

TEST_F(AttachClientTest, PreferredParentReplacesTheOtherAfterItsEnd) {
  AttachToTheSecondAndProbe();
  connector_->at(2).HoldEnd();
  Accept(1);
  EXPECT_TRUE(connector_->at(2).cancelled());
  EXPECT_THAT(delegate_.TakeCalls(), IsEmpty()) << "the other stream has not ended";
  EXPECT_FALSE(connector_->at(1).reading());
  End(2);
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("lost", "welcome"));
  EXPECT_TRUE(connector_->at(1).reading());
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(client_->target(), "relay:1");
}

TEST_F(AttachClientTest, PreferredParentWithoutUpstreamConnectionReplacesNothing) {
  AttachToTheSecondAndProbe();
  Accept(1, /*connected=*/false);
  EXPECT_TRUE(connector_->at(1).cancelled());
  EXPECT_TRUE(client_->attached());
  EXPECT_FALSE(connector_->at(2).cancelled());
  EXPECT_THAT(delegate_.TakeCalls(), IsEmpty());
}

TEST_F(AttachClientTest, PreferredParentThatIsLostBeforeItsAdoptionIsFollowedByAnAttempt) {
  AttachToTheSecondAndProbe();
  connector_->at(2).HoldEnd();
  Accept(1);
  End(1);
  End(2);
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("lost"));
  EXPECT_FALSE(client_->attached());
  Advance(absl::Seconds(7));  // less than an attempt may take; the jitter is at most 5 s
  EXPECT_EQ(connector_->connections(1) + connector_->connections(2), 4u);
}

TEST_F(AttachClientTest, LossOfTheParentEndsTheProbe) {
  AttachToTheSecondAndProbe();
  End(2);
  EXPECT_TRUE(connector_->at(1).cancelled());
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("lost"));
}

TEST_F(AttachClientTest, StopEndsAllStreamsAndCallsNobody) {
  AttachToTheSecondAndProbe();
  client_->Stop();
  EXPECT_TRUE(connector_->at(1).cancelled());
  EXPECT_TRUE(connector_->at(2).cancelled());
  Advance(absl::Hours(1));
  EXPECT_THAT(delegate_.TakeCalls(), IsEmpty());
  EXPECT_FALSE(client_->Send({}));
  EXPECT_EQ(connector_->connections(1), 2u);
}

}  // namespace
}  // namespace muster
