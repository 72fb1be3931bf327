#include "services/common/attach/attach_stream.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/attach/fake_parent.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kRelay[] = "spiffe://fleet.test/service/relay/r1";
constexpr absl::Duration kInterval = FakeParent::kInterval;

class AttachStreamTest : public ::testing::Test {
 protected:
  AttachStreamTest() { options_.uri = "spiffe://fleet.test/service/relay/r2"; }

  std::unique_ptr<AttachStream> Make(std::optional<std::string> current_relay = std::nullopt) {
    return std::make_unique<AttachStream>(
        AttachStream::Parts{options_, delegate_, clock_,
                            [this](const v1::AttachResponse::Greeting& greeting) {
                              v1::AttachStatement statement;
                              statement.set_relay(greeting.relay());
                              ToProto(clock_.Now() + absl::Hours(1),
                                      statement.mutable_expire_time());
                              return statement;
                            },
                            "instance",
                            /*started=*/absl::ZeroDuration(),
                            [this] {
                              ++changes_;
                              if (on_change_) on_change_();
                            }},
        std::move(current_relay));
  }
  std::unique_ptr<AttachStream> Attached() {
    auto stream = Make();
    stream->Start(parent_.Opener());
    parent_.Greet();
    parent_.Welcome();
    parent_.Drain();
    parent_.TakeSent();
    delegate_.TakeCalls();
    return stream;
  }

  FakeClock clock_;
  AttachClientOptions options_;
  RecordingDelegate delegate_;
  FakeParent parent_{kRelay};
  int changes_ = 0;
  std::function<void()> on_change_;
};

v1::AttachRequest Records() {
  v1::AttachRequest message;
  message.mutable_records()->add_records()->set_job("j");
  return message;
}

TEST_F(AttachStreamTest, GreetingIsAnsweredWithHello) {
  options_.is_relay = true;
  options_.relay_targets = {"r2:7445"};
  const auto stream = Make();
  clock_.Advance(absl::Seconds(7));
  stream->Start(parent_.Opener());
  EXPECT_EQ(stream->relay(), "");
  parent_.Greet();
  EXPECT_EQ(stream->relay(), kRelay);
  ASSERT_EQ(parent_.sent().size(), 1u);
  const v1::AttachRequest::Hello hello = parent_.sent()[0].hello();
  EXPECT_EQ(hello.statement().relay(), kRelay);
  EXPECT_EQ(hello.instance_id(), "instance");
  EXPECT_EQ(FromProto(hello.uptime()), clock_.MonotonicNow());
  EXPECT_TRUE(hello.is_relay());
  EXPECT_THAT(hello.relay_targets(), ElementsAre("r2:7445"));
  EXPECT_EQ(hello.revocations_version(), 7);
  EXPECT_FALSE(stream->welcomed());
  EXPECT_FALSE(stream->Send(Records())) << "before the welcome";
  parent_.Welcome();
  EXPECT_TRUE(stream->welcomed());
  EXPECT_TRUE(stream->Send(Records()));
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("welcome"));
}

TEST_F(AttachStreamTest, GreetingThatDoesNotMatchTheCertificateEndsTheStream) {
  const absl::Status why = absl::UnauthenticatedError("another key");
  parent_.SetGreetingCheck(why);
  const auto stream = Make();
  stream->Start(parent_.Opener());
  parent_.Greet();
  EXPECT_EQ(parent_.cancelled(), why);
  EXPECT_THAT(parent_.sent(), IsEmpty());
}

// Each greeting is answered with a signature.
TEST_F(AttachStreamTest, RelayThatGreetsWithoutEndIsLeft) {
  const auto stream = Attached();
  for (int i = 0; i < 1'000 && !stream->end(); ++i) {
    parent_.Greet();
    parent_.Drain();
  }
  EXPECT_EQ(ReasonOf(stream->end().value_or(absl::OkStatus())), "RELAY_REFUSED");
  EXPECT_LE(parent_.sent().size(), 100u);
}

TEST_F(AttachStreamTest, RejectedWelcomeEndsTheStream) {
  const absl::Status why = absl::FailedPreconditionError("a loop");
  delegate_.SetWelcomeResult(why);
  const auto stream = Make();
  stream->Start(parent_.Opener());
  parent_.Greet();
  parent_.Welcome();
  EXPECT_EQ(stream->end(), why);
}

TEST_F(AttachStreamTest, HeartbeatIsSentAfterAnIntervalWithoutMessages) {
  const auto stream = Attached();
  clock_.Advance(kInterval - absl::Seconds(1));
  stream->Tick();
  EXPECT_THAT(parent_.sent(), IsEmpty());
  clock_.Advance(absl::Seconds(1));
  stream->Tick();
  ASSERT_EQ(parent_.sent().size(), 1u);
  EXPECT_TRUE(parent_.sent()[0].has_beat());
}

TEST_F(AttachStreamTest, HeartbeatsDoNotQueueBehindAStuckWrite) {
  const auto stream = Attached();
  ASSERT_TRUE(stream->Send(Records()));  // never taken by the connection
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(kInterval);
    parent_.Deliver({});  // the relay is alive
    stream->Tick();
  }
  EXPECT_EQ(parent_.sent().size(), 1u);
  parent_.Drain();
  stream->Tick();
  ASSERT_EQ(parent_.sent().size(), 2u);
  EXPECT_TRUE(parent_.sent()[1].has_beat());
}

TEST_F(AttachStreamTest, NextMessageIsReadWhenTheDelegateTakesOne) {
  const auto stream = Attached();
  delegate_.SetFull(true);
  v1::AttachResponse message;
  message.mutable_cancel()->set_job("j");
  parent_.Deliver(message);
  EXPECT_FALSE(parent_.reading());
  // The messages of the relay are not read meanwhile: it is not silent.
  clock_.Advance(4 * kInterval);
  stream->Tick();
  EXPECT_FALSE(parent_.cancelled());
  const int reads = parent_.reads();
  stream->ResumeReading();
  stream->ResumeReading();
  EXPECT_EQ(parent_.reads(), reads + 1);
  stream->Tick();
  EXPECT_FALSE(parent_.cancelled());
  clock_.Advance(3 * kInterval + absl::Seconds(1));
  stream->Tick();
  EXPECT_TRUE(parent_.cancelled());
}

TEST_F(AttachStreamTest, SilentRelayEndsTheStreamAfterThreeIntervals) {
  const auto stream = Attached();
  clock_.Advance(3 * kInterval);
  stream->Tick();
  EXPECT_FALSE(stream->end());
  clock_.Advance(absl::Seconds(1));
  stream->Tick();
  EXPECT_TRUE(absl::IsDeadlineExceeded(*stream->end()));
  EXPECT_FALSE(stream->welcomed());
  EXPECT_FALSE(stream->Send(Records()));
}

TEST_F(AttachStreamTest, RelayThatDoesNotGreetEndsTheStream) {
  const auto stream = Make();
  stream->Start(parent_.Opener());
  clock_.Advance(absl::Seconds(21));
  stream->Tick();
  EXPECT_TRUE(absl::IsDeadlineExceeded(*stream->end()));
}

TEST_F(AttachStreamTest, StatementIsRenewedAtHalfOfItsLife) {
  const auto stream = Attached();
  clock_.Advance(absl::Minutes(31));
  parent_.Deliver({});
  stream->Tick();
  ASSERT_EQ(parent_.sent().size(), 1u);
  EXPECT_TRUE(parent_.sent()[0].has_hello());
}

TEST_F(AttachStreamTest, StatementIsRenewedAgainIfTheQueueWasFull) {
  const auto stream = Attached();
  clock_.Advance(absl::Minutes(31));
  parent_.Deliver({});
  parent_.SetFull(true);
  stream->Tick();
  EXPECT_THAT(parent_.sent(), IsEmpty());
  parent_.SetFull(false);
  stream->Tick();
  ASSERT_EQ(parent_.sent().size(), 1u);
  EXPECT_TRUE(parent_.sent()[0].has_hello());
}

TEST_F(AttachStreamTest, WritableIsCalledAfterARefusedMessage) {
  const auto stream = Attached();
  EXPECT_TRUE(stream->Send(Records()));
  parent_.Drain();
  EXPECT_THAT(delegate_.TakeCalls(), IsEmpty());
  parent_.SetFull(true);
  EXPECT_FALSE(stream->Send(Records()));
  parent_.Drain();
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("writable"));
}

TEST_F(AttachStreamTest, RelayThatEndsTheStreamWithoutReasonIsUnavailable) {
  const auto stream = Attached();
  parent_.End();
  EXPECT_TRUE(absl::IsUnavailable(*stream->end()));
}

TEST_F(AttachStreamTest, CandidateWelcomesTheDelegateWhenItIsAdopted) {
  const auto stream = Make("spiffe://fleet.test/service/relay/r9");
  stream->Start(parent_.Opener());
  parent_.Greet();
  EXPECT_FALSE(stream->offered());
  parent_.Welcome();
  EXPECT_TRUE(stream->offered());
  EXPECT_EQ(changes_, 1);
  EXPECT_THAT(delegate_.TakeCalls(), IsEmpty());
  EXPECT_FALSE(parent_.reading()) << "later messages are for the delegate";
  EXPECT_FALSE(stream->welcomed());
  stream->Adopt();
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("welcome"));
  EXPECT_TRUE(stream->welcomed());
  parent_.Deliver({});
}

// The owner may adopt the candidate before the callback of the offer has returned.
TEST_F(AttachStreamTest, AdoptInTheCallbackOfTheOfferReadsOneMessageAfterTheWelcome) {
  const auto stream = Make("spiffe://fleet.test/service/relay/r9");
  on_change_ = [&] {
    if (!stream->offered()) return;
    stream->Adopt();
    // Arrives before the callback of the offer returns.
    v1::AttachResponse message;
    message.mutable_cancel()->set_job("j");
    parent_.Deliver(std::move(message));
  };
  stream->Start(parent_.Opener());
  parent_.Greet();
  parent_.Welcome();
  EXPECT_THAT(delegate_.TakeCalls(), ElementsAre("welcome", "message"));
  EXPECT_EQ(parent_.reads(), 4) << "greeting, welcome, message, and one more";
}

TEST_F(AttachStreamTest, MessageBeforeTheWelcomeEndsTheStream) {
  for (const bool candidate : {false, true}) {
    FakeParent parent(kRelay);
    const auto stream = candidate ? Make("spiffe://fleet.test/service/relay/r9") : Make();
    stream->Start(parent.Opener());
    parent.Greet();
    v1::AttachResponse message;
    message.mutable_cancel()->set_job("j");
    parent.Deliver(std::move(message));
    EXPECT_EQ(ReasonOf(stream->end().value_or(absl::OkStatus())), "RELAY_REFUSED");
  }
  EXPECT_THAT(delegate_.TakeCalls(), IsEmpty());
}

TEST_F(AttachStreamTest, AdoptOfACandidateThatHasEndedHasNoEffect) {
  const auto stream = Make("spiffe://fleet.test/service/relay/r9");
  stream->Start(parent_.Opener());
  parent_.Greet();
  parent_.Welcome();
  stream->End(absl::CancelledError("this program stops"));
  stream->Adopt();
  EXPECT_THAT(delegate_.TakeCalls(), IsEmpty());
  EXPECT_FALSE(stream->welcomed_at());
  EXPECT_FALSE(parent_.reading());
}

TEST_F(AttachStreamTest, CandidateAtTheSameRelayIsRejected) {
  const auto stream = Make(kRelay);
  stream->Start(parent_.Opener());
  parent_.Greet();
  EXPECT_TRUE(absl::IsAlreadyExists(*stream->end()));
}

TEST_F(AttachStreamTest, CandidateWithoutUpstreamConnectionIsRejected) {
  const auto stream = Make("spiffe://fleet.test/service/relay/r9");
  stream->Start(parent_.Opener());
  parent_.Greet();
  parent_.Welcome(/*connected=*/false);
  EXPECT_TRUE(absl::IsUnavailable(*stream->end()));
}

TEST_F(AttachStreamTest, CandidateThatIsADescendantIsRejected) {
  const auto stream = Make("spiffe://fleet.test/service/relay/r9");
  stream->Start(parent_.Opener());
  parent_.Greet();
  parent_.Welcome(true, {"root", "r2", "r1"});
  EXPECT_TRUE(absl::IsFailedPrecondition(*stream->end()));
}

}  // namespace
}  // namespace muster
