// The stream to a real server over mutual TLS; the timers are on a fake clock.
#include "services/relay/proxy/heartbeats/upstream_heartbeats.h"

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/testing/stream_fixture.h"
#include "services/relay/testing/stub_upstream.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

using testing::Await;
using testing::Mailbox;
using testing::RelayScript;
using testing::RelayStream;
using testing::StreamServer;
using testing::StubUpstream;

// The time between two messages, and the largest first wait after a stream.
constexpr absl::Duration kPace = absl::Milliseconds(250);
constexpr absl::Duration kFirstWait = absl::Milliseconds(500);

// A timer service that records the delay of the last timer. Thread-safe.
class RecordedTimers final : public TimerService {
 public:
  explicit RecordedTimers(TimerService& timers) : timers_(timers) {}

  absl::StatusOr<TimerId> Schedule(absl::Duration delay,
                                   absl::AnyInvocable<void()> callback) override {
    return timers_.Schedule(delay, std::move(callback));
  }
  TimerId ScheduleAlways(absl::Duration delay, absl::AnyInvocable<void()> callback) override {
    {
      MutexLock lock(mutex_);
      last_delay_ = delay;
    }
    return timers_.ScheduleAlways(delay, std::move(callback));
  }
  bool Cancel(TimerId id) override { return timers_.Cancel(id); }
  void Stop() override { timers_.Stop(); }

  absl::Duration last_delay() const {
    MutexLock lock(mutex_);
    return last_delay_;
  }

 private:
  TimerService& timers_;
  mutable Mutex mutex_;
  absl::Duration last_delay_ ABSL_GUARDED_BY(mutex_);
};

class UpstreamHeartbeatsTest : public ::testing::Test {
 protected:
  UpstreamHeartbeatsTest() {
    script_.on_start = [](RelayStream& stream) { stream.ReadNext(); };
    script_.on_message = [this](RelayStream& stream, v1::RelayHeartbeatsRequest request) {
      requests_.Put(std::move(request));
      stream.ReadNext();
    };
    server_.Serve(script_);
  }

  void Start() {
    heartbeats_ = std::make_unique<UpstreamHeartbeats>(hub_, upstream_, clock_, timers_, executor_);
    executor_.AwaitIdle();
  }
  void StartConnected() {
    upstream_.SetStatus(server_.ConnectRelay("r1"));
    Start();
    stream_ = script_.started.Take().value();
    EXPECT_EQ(requests_.Take()->relay(), "r1");
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }
  int32_t AddSender() {
    auto caller = std::make_shared<Caller>();
    caller->identity = {"fleet.test", NodeIdentity{"n1"}};
    return hub_.Add(std::move(caller), v1::StreamHeartbeatsRequest(), {}).value();
  }
  // Advances the clock until the server has received a message or a stream.
  template <typename T>
  bool AwaitNext(Mailbox<T>& mailbox) {
    return Await([&] {
      Advance(kPace);
      return mailbox.size() > 0;
    });
  }

  RelayScript script_;
  Mailbox<v1::RelayHeartbeatsRequest> requests_;
  StreamServer server_;
  FakeClock clock_;
  RecordedTimers timers_{clock_};
  Executor executor_{{.name = "background", .threads = 1}};
  Metrics metrics_;
  HeartbeatHub hub_{"r1", [](const Caller&) { return std::string("statement"); }, clock_, metrics_};
  StubUpstream upstream_;
  std::shared_ptr<RelayStream> stream_;  // the first one, at the server
  std::unique_ptr<UpstreamHeartbeats> heartbeats_;
};

TEST_F(UpstreamHeartbeatsTest, MessagesOfTheHubAreSentAtThePace) {
  StartConnected();
  const int32_t id = AddSender();
  executor_.AwaitIdle();
  EXPECT_EQ(requests_.size(), 0u);
  ASSERT_TRUE(AwaitNext(requests_));
  const auto request = requests_.Take();
  ASSERT_EQ(request->senders_size(), 1);
  EXPECT_EQ(request->senders(0).id(), id);
}

TEST_F(UpstreamHeartbeatsTest, ResponsesReachTheHub) {
  StartConnected();
  v1::RelayHeartbeatsResponse response;
  response.mutable_interval()->set_seconds(3);
  stream_->Send(std::move(response));
  EXPECT_TRUE(Await([this] { return hub_.interval() == absl::Seconds(3); }));
}

TEST_F(UpstreamHeartbeatsTest, EndOfAStreamIsHandledBeforeTheNextMessageIsDue) {
  StartConnected();
  stream_->End(absl::UnavailableError("gone"));
  EXPECT_TRUE(Await([this] { return timers_.last_delay() != kPace; }));
  executor_.AwaitIdle();
  EXPECT_LE(timers_.last_delay(), kFirstWait);
  EXPECT_EQ(script_.started.size(), 0u) << "the next stream is opened after the wait";
  Advance(kFirstWait);
  EXPECT_TRUE(script_.started.Take());
}

TEST_F(UpstreamHeartbeatsTest, SendersAreIntroducedAgainOnANewStream) {
  StartConnected();
  AddSender();
  ASSERT_TRUE(AwaitNext(requests_));
  requests_.Take();
  stream_->End(absl::OkStatus());
  ASSERT_TRUE(AwaitNext(requests_));
  const auto request = requests_.Take();
  EXPECT_EQ(request->relay(), "r1");
  ASSERT_EQ(request->senders_size(), 1);
  EXPECT_EQ(request->senders(0).uri(), "spiffe://fleet.test/node/n1");
}

// The stream takes the goodbye, and ends before the service has handled it.
TEST_F(UpstreamHeartbeatsTest, GoodbyeIsRepeatedUntilTheServiceResponds) {
  StartConnected();
  const int32_t id = AddSender();
  v1::StreamHeartbeatsRequest goodbye;
  goodbye.set_goodbye(true);
  hub_.HandleHeartbeat(id, goodbye);
  hub_.Remove(id);
  ASSERT_TRUE(AwaitNext(requests_));
  EXPECT_TRUE(requests_.Take()->senders(0).beat().goodbye());
  stream_->End(absl::UnavailableError("gone"));
  ASSERT_TRUE(AwaitNext(requests_));
  const auto request = requests_.Take();
  ASSERT_EQ(request->senders_size(), 1);
  EXPECT_TRUE(request->senders(0).beat().goodbye());
  EXPECT_EQ(hub_.senders(), 1u);
  script_.started.Take().value()->Send(v1::RelayHeartbeatsResponse());
  EXPECT_TRUE(Await([this] { return hub_.senders() == 0; }));
}

TEST_F(UpstreamHeartbeatsTest, NewChannelReplacesTheStream) {
  StartConnected();
  upstream_.SetStatus(server_.ConnectRelay("r1"));
  ASSERT_TRUE(AwaitNext(script_.started));
  EXPECT_EQ(script_.ended.Take()->by, EndedBy::kPeer);
}

TEST_F(UpstreamHeartbeatsTest, StreamIsOpenedOnceThereIsAChannel) {
  Start();
  Advance(absl::Minutes(1));
  EXPECT_EQ(script_.started.size(), 0u);
  upstream_.SetStatus(server_.ConnectRelay("r1"));
  Advance(absl::Seconds(1));
  EXPECT_TRUE(script_.started.Take());
}

TEST_F(UpstreamHeartbeatsTest, DestructorEndsTheStream) {
  StartConnected();
  heartbeats_.reset();
  EXPECT_EQ(script_.ended.Take()->by, EndedBy::kPeer);
}

}  // namespace
}  // namespace muster
