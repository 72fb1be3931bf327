#include "services/client/heartbeat_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "absl/time/clock.h"
#include "services/client/heartbeats.h"
#include "services/client/sender.h"
#include "services/client/status_channels.h"
#include "services/client/test_peer.h"
#include "services/client/test_status_peer.h"
#include "services/common/base/mutex.h"

namespace muster::client {
namespace {

// Waits for the first answer or the end of a connection.
class FirstEvent final : public HeartbeatInbox {
 public:
  void OnAnswer(const HeartbeatAnswer&) override { Set(absl::OkStatus()); }
  void OnWritable() override {}
  void OnEnd(const absl::Status& status) override { Set(status); }

  absl::Status Await() {
    MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, absl::Seconds(30),
                     [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return event_.has_value(); });
    return event_.value_or(absl::DeadlineExceededError("no event"));
  }

 private:
  void Set(const absl::Status& status) {
    MutexLock lock(mutex_);
    if (!event_) event_ = status;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::optional<absl::Status> event_ ABSL_GUARDED_BY(mutex_);
};

class HeartbeatStreamTest : public ::testing::Test {
 protected:
  HeartbeatStreamTest() {
    status_.Start();
    const auto sender = Sender::Make(fleet_.ConfigOf("n1"), absl::Now());
    dial_ = MakeStreamDialer(MakeStatusChannels({status_.target()}, **sender),
                             {fleet_.run, "facts", "n1"});
  }

  // Sends one heartbeat over a new connection; returns OK if it is answered.
  absl::Status SendOne() {
    FirstEvent event;
    const auto connection = dial_(event, {});
    connection->Send({.sequence = 1, .time = absl::Now()});
    return event.Await();
  }

  const TestFleet fleet_ = TestFleet::Make();
  TestStatusPeer status_{fleet_};
  HeartbeatDialer dial_;
};

// The back-off of gRPC's channel, which begins at 200 ms, must not reject the stream.
TEST_F(HeartbeatStreamTest, FirstConnectionAfterARestartOfTheServerIsAnswered) {
  EXPECT_EQ(SendOne(), absl::OkStatus());
  status_.Stop();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(SendOne().ok());
  status_.Start();
  EXPECT_EQ(SendOne(), absl::OkStatus());
}

}  // namespace
}  // namespace muster::client
