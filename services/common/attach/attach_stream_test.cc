#include "services/common/attach/attach_stream.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kRelay[] = "spiffe://fleet.test/service/relay/r1";
constexpr absl::Duration kInterval = absl::Seconds(15);

// A parent that the test plays. The test calls events only for messages that were asked for.
struct FakeParent {
  ParentStreamEvents* events = nullptr;
  bool reading = false;
  bool full = false;  // Send returns kFull
  absl::Status greeting_check;
  std::vector<v1::AttachRequest> sent;
  std::optional<absl::Status> cancelled;

  void Deliver(v1::AttachResponse message) {
    ASSERT_TRUE(std::exchange(reading, false)) << "no message was asked for";
    events->OnMessage(std::move(message));
  }
  void Greet(const std::string& relay = kRelay) {
    v1::AttachResponse message;
    message.mutable_greeting()->set_relay(relay);
    Deliver(std::move(message));
  }
  void Welcome(bool connected = true, const std::vector<std::string>& path = {"root"}) {
    v1::AttachResponse message;
    ToProto(kInterval, message.mutable_welcome()->mutable_interval());
    for (const std::string& relay : path) message.mutable_welcome()->add_path(relay);
    message.mutable_welcome()->set_connected(connected);
    Deliver(std::move(message));
  }
  // The connection takes what was sent.
  void Drain() {
    full = false;
    events->OnWritable();
  }
  std::vector<v1::AttachRequest> TakeSent() { return std::exchange(sent, {}); }
};

class FakeParentStream final : public ParentStream {
 public:
  explicit FakeParentStream(FakeParent& parent) : parent_(parent) {}

  void ReadNext() override { parent_.reading = !parent_.cancelled; }
  Sent Send(v1::AttachRequest message) override {
    if (parent_.cancelled) return Sent::kEnded;
    if (parent_.full) return Sent::kFull;
    parent_.sent.push_back(std::move(message));
    return Sent::kQueued;
  }
  void Cancel(const absl::Status& why) override {
    if (parent_.cancelled) return;
    parent_.cancelled = why;
    parent_.reading = false;
    parent_.events->OnEnd(why);
  }
  void Close() override { Cancel(absl::CancelledError("closed")); }
  absl::Status CheckGreeting(const v1::AttachResponse::Greeting&) override {
    return parent_.greeting_check;
  }

 private:
  FakeParent& parent_;
};

struct RecordingDelegate final : AttachDelegate {
  int64_t RevocationsVersion() override { return 7; }
  absl::Status OnWelcome(const v1::AttachResponse::Welcome&, bool first) override {
    calls.push_back(first ? "welcome" : "welcome again");
    return welcome_result;
  }
  void OnMessage(v1::AttachResponse) override { calls.push_back("message"); }
  void OnLost(const absl::Status&) override { calls.push_back("lost"); }
  void OnWritable() override { calls.push_back("writable"); }

  absl::Status welcome_result;
  std::vector<std::string> calls;
};

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
                            "instance"},
        std::move(current_relay));
  }
  OpenParentStream Opener() {
    return [this](ParentStreamEvents& events) {
      parent_.events = &events;
      return std::make_unique<FakeParentStream>(parent_);
    };
  }
  std::unique_ptr<AttachStream> Attached() {
    auto stream = Make();
    stream->Start(Opener());
    parent_.Greet();
    parent_.Welcome();
    parent_.Drain();
    parent_.TakeSent();
    delegate_.calls.clear();
    return stream;
  }

  FakeClock clock_;
  AttachClientOptions options_;
  RecordingDelegate delegate_;
  FakeParent parent_;
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
  stream->Start(Opener());
  EXPECT_EQ(stream->relay(), "");
  parent_.Greet();
  EXPECT_EQ(stream->relay(), kRelay);
  ASSERT_EQ(parent_.sent.size(), 1u);
  const auto& hello = parent_.sent[0].hello();
  EXPECT_EQ(hello.statement().relay(), kRelay);
  EXPECT_EQ(hello.instance_id(), "instance");
  EXPECT_TRUE(hello.is_relay());
  EXPECT_THAT(hello.relay_targets(), ElementsAre("r2:7445"));
  EXPECT_EQ(hello.revocations_version(), 7);
  EXPECT_FALSE(stream->welcomed());
  EXPECT_FALSE(stream->Send(Records())) << "before the welcome";
  parent_.Welcome();
  EXPECT_TRUE(stream->welcomed());
  EXPECT_TRUE(stream->Send(Records()));
  EXPECT_THAT(delegate_.calls, ElementsAre("welcome"));
}

TEST_F(AttachStreamTest, GreetingThatDoesNotMatchTheCertificateEndsTheStream) {
  parent_.greeting_check = absl::UnauthenticatedError("another key");
  const auto stream = Make();
  stream->Start(Opener());
  parent_.Greet();
  EXPECT_EQ(parent_.cancelled, parent_.greeting_check);
  EXPECT_THAT(parent_.sent, IsEmpty());
}

TEST_F(AttachStreamTest, RejectedWelcomeEndsTheStream) {
  delegate_.welcome_result = absl::FailedPreconditionError("a loop");
  const auto stream = Make();
  stream->Start(Opener());
  parent_.Greet();
  parent_.Welcome();
  EXPECT_EQ(stream->AwaitEnd(absl::ZeroDuration()), delegate_.welcome_result);
}

TEST_F(AttachStreamTest, HeartbeatIsSentAfterAnIntervalWithoutMessages) {
  const auto stream = Attached();
  clock_.Advance(kInterval - absl::Seconds(1));
  stream->Tick();
  EXPECT_THAT(parent_.sent, IsEmpty());
  clock_.Advance(absl::Seconds(1));
  stream->Tick();
  ASSERT_EQ(parent_.sent.size(), 1u);
  EXPECT_TRUE(parent_.sent[0].has_beat());
}

TEST_F(AttachStreamTest, HeartbeatsDoNotQueueBehindAStuckWrite) {
  const auto stream = Attached();
  ASSERT_TRUE(stream->Send(Records()));  // never taken by the connection
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(kInterval);
    parent_.Deliver({});  // the relay is alive
    stream->Tick();
  }
  EXPECT_EQ(parent_.sent.size(), 1u);
  parent_.Drain();
  stream->Tick();
  ASSERT_EQ(parent_.sent.size(), 2u);
  EXPECT_TRUE(parent_.sent[1].has_beat());
}

TEST_F(AttachStreamTest, SilentRelayEndsTheStreamAfterThreeIntervals) {
  const auto stream = Attached();
  clock_.Advance(3 * kInterval);
  stream->Tick();
  EXPECT_FALSE(stream->AwaitEnd(absl::ZeroDuration()));
  clock_.Advance(absl::Seconds(1));
  stream->Tick();
  EXPECT_TRUE(absl::IsDeadlineExceeded(*stream->AwaitEnd(absl::ZeroDuration())));
  EXPECT_FALSE(stream->welcomed());
  EXPECT_FALSE(stream->Send(Records()));
}

TEST_F(AttachStreamTest, RelayThatDoesNotGreetEndsTheStream) {
  const auto stream = Make();
  stream->Start(Opener());
  clock_.Advance(absl::Seconds(21));
  stream->Tick();
  EXPECT_TRUE(absl::IsDeadlineExceeded(*stream->AwaitEnd(absl::ZeroDuration())));
}

TEST_F(AttachStreamTest, StatementIsRenewedAtHalfOfItsLife) {
  const auto stream = Attached();
  clock_.Advance(absl::Minutes(31));
  parent_.Deliver({});
  stream->Tick();
  ASSERT_EQ(parent_.sent.size(), 1u);
  EXPECT_TRUE(parent_.sent[0].has_hello());
}

TEST_F(AttachStreamTest, StatementIsRenewedAgainIfTheQueueWasFull) {
  const auto stream = Attached();
  clock_.Advance(absl::Minutes(31));
  parent_.Deliver({});
  parent_.full = true;
  stream->Tick();
  EXPECT_THAT(parent_.sent, IsEmpty());
  parent_.full = false;
  stream->Tick();
  ASSERT_EQ(parent_.sent.size(), 1u);
  EXPECT_TRUE(parent_.sent[0].has_hello());
}

TEST_F(AttachStreamTest, WritableIsCalledAfterARefusedMessage) {
  const auto stream = Attached();
  EXPECT_TRUE(stream->Send(Records()));
  parent_.Drain();
  EXPECT_THAT(delegate_.calls, IsEmpty());
  parent_.full = true;
  EXPECT_FALSE(stream->Send(Records()));
  parent_.Drain();
  EXPECT_THAT(delegate_.calls, ElementsAre("writable"));
}

TEST_F(AttachStreamTest, RelayThatEndsTheStreamWithoutReasonIsUnavailable) {
  const auto stream = Attached();
  parent_.cancelled = absl::OkStatus();
  parent_.events->OnEnd(absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(*stream->AwaitEnd(absl::ZeroDuration())));
}

TEST_F(AttachStreamTest, StreamThatIsEndedBeforeItsStartIsCancelled) {
  const auto stream = Make();
  stream->End(absl::CancelledError("stop"));
  stream->Start(Opener());
  EXPECT_EQ(parent_.cancelled, absl::CancelledError("stop"));
  EXPECT_EQ(stream->AwaitEnd(absl::ZeroDuration()), absl::CancelledError("stop"));
}

TEST_F(AttachStreamTest, CandidateWelcomesTheDelegateWhenItIsAdopted) {
  const auto stream = Make("spiffe://fleet.test/service/relay/r9");
  stream->Start(Opener());
  parent_.Greet();
  EXPECT_FALSE(stream->AwaitOffer(absl::ZeroDuration()));
  parent_.Welcome();
  EXPECT_EQ(stream->AwaitOffer(absl::ZeroDuration()), absl::OkStatus());
  EXPECT_THAT(delegate_.calls, IsEmpty());
  EXPECT_FALSE(parent_.reading) << "later messages are for the delegate";
  EXPECT_FALSE(stream->welcomed());
  stream->Adopt();
  EXPECT_THAT(delegate_.calls, ElementsAre("welcome"));
  EXPECT_TRUE(stream->welcomed());
  parent_.Deliver({});
}

TEST_F(AttachStreamTest, AdoptOfACandidateThatHasEndedHasNoEffect) {
  const auto stream = Make("spiffe://fleet.test/service/relay/r9");
  stream->Start(Opener());
  parent_.Greet();
  parent_.Welcome();
  stream->End(absl::CancelledError("this program stops"));
  stream->Adopt();
  EXPECT_THAT(delegate_.calls, IsEmpty());
  EXPECT_FALSE(stream->welcomed_at());
  EXPECT_FALSE(parent_.reading);
}

TEST_F(AttachStreamTest, CandidateAtTheSameRelayIsRejected) {
  const auto stream = Make(kRelay);
  stream->Start(Opener());
  parent_.Greet();
  EXPECT_TRUE(absl::IsAlreadyExists(*stream->AwaitOffer(absl::ZeroDuration())));
}

TEST_F(AttachStreamTest, CandidateWithoutUpstreamConnectionIsRejected) {
  const auto stream = Make("spiffe://fleet.test/service/relay/r9");
  stream->Start(Opener());
  parent_.Greet();
  parent_.Welcome(/*connected=*/false);
  EXPECT_TRUE(absl::IsUnavailable(*stream->AwaitOffer(absl::ZeroDuration())));
}

TEST_F(AttachStreamTest, CandidateThatIsADescendantIsRejected) {
  const auto stream = Make("spiffe://fleet.test/service/relay/r9");
  stream->Start(Opener());
  parent_.Greet();
  parent_.Welcome(true, {"root", "r2", "r1"});
  EXPECT_TRUE(absl::IsFailedPrecondition(*stream->AwaitOffer(absl::ZeroDuration())));
}

}  // namespace
}  // namespace muster
