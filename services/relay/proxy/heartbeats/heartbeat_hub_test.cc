#include "services/relay/proxy/heartbeats/heartbeat_hub.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/metrics.h"
#include "services/common/errors/relay.h"
#include "services/common/rpc/limits.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

// The stream of one sender.
struct FakeSender final : HeartbeatSender {
  void Probe() override { ++probes; }
  void End(const absl::Status& why) override { end = why; }

  int probes = 0;
  std::optional<absl::Status> end;
};

v1::StreamHeartbeatsRequest Heartbeat(int64_t sequence) {
  v1::StreamHeartbeatsRequest heartbeat;
  heartbeat.set_sequence(sequence);
  return heartbeat;
}

v1::StreamHeartbeatsRequest News(int64_t sequence, const std::string& message) {
  v1::StreamHeartbeatsRequest heartbeat = Heartbeat(sequence);
  v1::Activity& activity = *heartbeat.add_activities();
  activity.mutable_key()->set_run("r");
  activity.mutable_key()->set_plugin("p");
  activity.set_message(message);
  return heartbeat;
}

v1::StreamHeartbeatsRequest Goodbye(int64_t sequence) {
  v1::StreamHeartbeatsRequest heartbeat = Heartbeat(sequence);
  heartbeat.set_goodbye(true);
  return heartbeat;
}

v1::StreamHeartbeatsRequest Appended(int64_t sequence) {
  v1::StreamHeartbeatsRequest heartbeat = News(sequence, "");
  heartbeat.mutable_activities(0)->mutable_progress()->set_append_completed(1);
  return heartbeat;
}

// A heartbeat with names of failed items of `bytes` in all.
v1::StreamHeartbeatsRequest Large(int64_t sequence, const std::string& plugin, size_t bytes) {
  v1::StreamHeartbeatsRequest heartbeat = News(sequence, "");
  v1::Activity& activity = *heartbeat.mutable_activities(0);
  activity.mutable_key()->set_plugin(plugin);
  for (size_t i = 0; i < bytes / 1024; ++i) {
    activity.mutable_progress()->add_failures(std::string(1024, 'x'));
  }
  return heartbeat;
}

class HeartbeatHubTest : public ::testing::Test {
 protected:
  int32_t Add(const std::string& node, const std::shared_ptr<FakeSender>& sender,
              int64_t sequence = 1) {
    return Add(node, sender, Heartbeat(sequence));
  }
  int32_t Add(const std::string& node, const std::shared_ptr<FakeSender>& sender,
              const v1::StreamHeartbeatsRequest& first) {
    auto caller = std::make_shared<Caller>();
    caller->identity = {"fleet.test", NodeIdentity{node}};
    const auto id = hub_.Add(std::move(caller), first, sender);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }
  // Adds a sender that the status service knows already.
  int32_t AddIntroduced(const std::string& node, const std::shared_ptr<FakeSender>& sender) {
    const int32_t id = Add(node, sender);
    EXPECT_TRUE(hub_.Next());
    return id;
  }

  // Sends a goodbye and ends the stream.
  void Leave(int32_t id) {
    hub_.HandleHeartbeat(id, Goodbye(9));
    hub_.Remove(id);
  }
  void Respond() { hub_.HandleResponse(v1::RelayHeartbeatsResponse()); }
  // Returns whether the only entry of the next message has a goodbye.
  bool NextHasGoodbye() {
    const auto request = hub_.Next();
    return request && request->senders_size() == 1 && request->senders(0).beat().goodbye();
  }

  FakeClock clock_;
  Metrics metrics_;
  absl::StatusOr<std::string> statement_ = "statement";
  HeartbeatHub hub_{"r1", [this](const Caller&) { return statement_; }, clock_, metrics_};
  const std::shared_ptr<FakeSender> sender_ = std::make_shared<FakeSender>();
};

TEST_F(HeartbeatHubTest, FirstMessageNamesTheRelayAndIntroducesSenders) {
  const int32_t id = Add("n1", sender_, 4);
  const auto first = hub_.Next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->relay(), "r1");
  ASSERT_EQ(first->senders_size(), 1);
  EXPECT_EQ(first->senders(0).id(), id);
  EXPECT_EQ(first->senders(0).uri(), "spiffe://fleet.test/node/n1");
  EXPECT_EQ(first->senders(0).attach_statement(), "statement");
  EXPECT_EQ(first->senders(0).beat().sequence(), 4);
  EXPECT_FALSE(hub_.Next()) << "nothing is new";
}

TEST_F(HeartbeatHubTest, HeartbeatsWithoutNewsAreListedByNumberOnceAnInterval) {
  const int32_t id = AddIntroduced("n1", sender_);
  hub_.HandleHeartbeat(id, Heartbeat(2));
  hub_.HandleHeartbeat(id, Heartbeat(3));
  clock_.Advance(hub_.interval());
  const auto request = hub_.Next();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->senders_size(), 0);
  EXPECT_THAT(request->heard_ids(), ElementsAre(id));
  EXPECT_FALSE(hub_.Next()) << "nothing is due";
  clock_.Advance(hub_.interval() / 2);
  const auto empty = hub_.Next();
  ASSERT_TRUE(empty) << "shows that the relay is not silent";
  EXPECT_EQ(empty->heard_ids_size(), 0) << "a silent sender is not listed";
  EXPECT_FALSE(hub_.Next());
}

TEST_F(HeartbeatHubTest, NewsOfAFastSenderAreMerged) {
  const int32_t id = AddIntroduced("n1", sender_);
  for (int64_t i = 2; i <= 50; ++i) hub_.HandleHeartbeat(id, News(i, absl::StrCat("step ", i)));
  const auto request = hub_.Next();
  ASSERT_TRUE(request);
  ASSERT_EQ(request->senders_size(), 1);
  EXPECT_EQ(request->senders(0).beat().sequence(), 50);
  ASSERT_EQ(request->senders(0).beat().activities_size(), 1);
  EXPECT_EQ(request->senders(0).beat().activities(0).message(), "step 50");
}

TEST_F(HeartbeatHubTest, AppendedProgressIsAddedUp) {
  const int32_t id = AddIntroduced("n1", sender_);
  hub_.HandleHeartbeat(id, Appended(2));
  hub_.HandleHeartbeat(id, Appended(3));
  const auto request = hub_.Next();
  ASSERT_TRUE(request);
  ASSERT_EQ(request->senders(0).beat().activities_size(), 1);
  EXPECT_EQ(request->senders(0).beat().activities(0).progress().append_completed(), 2);
}

TEST_F(HeartbeatHubTest, AppendedProgressIsNotRepeatedAfterAResponse) {
  Add("n1", sender_, Appended(1));
  ASSERT_EQ(hub_.Next()->senders(0).beat().activities(0).progress().append_completed(), 1);
  Respond();
  hub_.Restart();
  const auto again = hub_.Next();
  ASSERT_TRUE(again);
  ASSERT_EQ(again->senders_size(), 1);
  ASSERT_EQ(again->senders(0).beat().activities_size(), 1);
  EXPECT_FALSE(again->senders(0).beat().activities(0).has_progress());
}

TEST_F(HeartbeatHubTest, AppendedProgressWithoutAResponseIsSentOnTheNextStream) {
  const int32_t id = AddIntroduced("n1", sender_);
  hub_.HandleHeartbeat(id, Appended(2));
  ASSERT_TRUE(hub_.Next()) << "to a service that is away";
  hub_.HandleHeartbeat(id, Appended(3));
  hub_.Restart();
  const auto again = hub_.Next();
  ASSERT_TRUE(again);
  ASSERT_EQ(again->senders(0).beat().activities_size(), 1);
  EXPECT_EQ(again->senders(0).beat().activities(0).progress().append_completed(), 2);
}

// The status service refuses larger messages, with the stream of all senders.
TEST_F(HeartbeatHubTest, MessagesStayBelowTheLimitOfTheStatusService) {
  const int32_t large = AddIntroduced("n1", sender_);
  for (int i = 0; i < 1000; ++i) {
    hub_.HandleHeartbeat(large, Large(2 + i, absl::StrCat("p", i), 200 << 10));
  }
  for (int i = 2; i < 10; ++i) Add(absl::StrCat("n", i), sender_, Large(1, "p", 450 << 10));
  for (int stream = 0; stream < 2; ++stream) {
    int introduced = 0;
    for (int messages = 0; introduced < 8 && messages < 100; ++messages) {
      const auto request = hub_.Next();
      ASSERT_TRUE(request);
      EXPECT_LT(request->ByteSizeLong(), size_t{kMaxSmallMessageBytes} - 5 * 100'000)
          << "with room for the list of heartbeats";
      for (const auto& sender : request->senders()) introduced += sender.id() != large;
    }
    EXPECT_EQ(introduced, 8);
    hub_.Restart();
  }
}

TEST_F(HeartbeatHubTest, SenderWithoutStatementIsIntroducedWhenItHasOne) {
  statement_ = errors::NotAttached("n1");
  Add("n1", sender_);
  const auto first = hub_.Next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->senders_size(), 0);
  statement_ = "statement";
  const auto second = hub_.Next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->senders_size(), 1);
}

TEST_F(HeartbeatHubTest, NewStatementIsSentWithinHalfAMinute) {
  const int32_t id = AddIntroduced("n1", sender_);
  statement_ = "renewed";
  clock_.Advance(absl::Seconds(31));
  hub_.Next();
  const auto request = hub_.Next();
  ASSERT_TRUE(request);
  ASSERT_EQ(request->senders_size(), 1);
  EXPECT_EQ(request->senders(0).id(), id);
  EXPECT_EQ(request->senders(0).attach_statement(), "renewed");
}

TEST_F(HeartbeatHubTest, NewUpstreamStreamIntroducesAllSendersAgain) {
  AddIntroduced("n1", sender_);
  hub_.Restart();
  const auto request = hub_.Next();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->relay(), "r1");
  ASSERT_EQ(request->senders_size(), 1);
  EXPECT_EQ(request->senders(0).uri(), "spiffe://fleet.test/node/n1");
}

TEST_F(HeartbeatHubTest, EndOfAStreamIsReported) {
  const int32_t id = AddIntroduced("n1", sender_);
  hub_.Remove(id);
  const auto request = hub_.Next();
  ASSERT_TRUE(request);
  ASSERT_EQ(request->senders_size(), 1);
  EXPECT_EQ(request->senders(0).id(), id);
  EXPECT_TRUE(request->senders(0).ended());
  EXPECT_EQ(hub_.senders(), 0u);
}

TEST_F(HeartbeatHubTest, GoodbyeIsSentAfterTheStreamHasEnded) {
  Leave(AddIntroduced("n1", sender_));
  const auto request = hub_.Next();
  ASSERT_TRUE(request);
  ASSERT_EQ(request->senders_size(), 1);
  EXPECT_TRUE(request->senders(0).beat().goodbye());
  EXPECT_FALSE(request->senders(0).ended());
  Respond();
  EXPECT_EQ(hub_.senders(), 0u);
  hub_.Restart();
  EXPECT_EQ(hub_.Next()->senders_size(), 0);
}

TEST_F(HeartbeatHubTest, SenderWithASentGoodbyeIsRemovedWithItsStream) {
  const int32_t id = AddIntroduced("n1", sender_);
  hub_.HandleHeartbeat(id, Goodbye(2));
  ASSERT_TRUE(NextHasGoodbye());
  Respond();
  EXPECT_EQ(hub_.senders(), 1u);
  hub_.Remove(id);
  EXPECT_EQ(hub_.senders(), 0u);
}

TEST_F(HeartbeatHubTest, GoodbyeWithoutAResponseIsSentOnTheNextStream) {
  Leave(AddIntroduced("n1", sender_));
  ASSERT_TRUE(NextHasGoodbye()) << "to a service that is away";
  hub_.Restart();
  EXPECT_TRUE(NextHasGoodbye());
}

TEST_F(HeartbeatHubTest, GoodbyeThatTheStartingServiceRefusesIsSentAgainBeforeOthers) {
  const int32_t id = AddIntroduced("n1", sender_);
  Leave(id);
  ASSERT_TRUE(NextHasGoodbye());
  Add("n1", sender_);
  v1::RelayHeartbeatsResponse response;
  auto& refused = *response.add_refused();
  refused.set_id(id);
  refused.set_code(static_cast<int>(absl::StatusCode::kUnavailable));
  hub_.HandleResponse(response);
  const auto again = hub_.Next();
  ASSERT_TRUE(again);
  ASSERT_EQ(again->senders_size(), 2);
  EXPECT_EQ(again->senders(0).id(), id);
  EXPECT_EQ(again->senders(0).uri(), "spiffe://fleet.test/node/n1") << "it is introduced again";
  EXPECT_TRUE(again->senders(0).beat().goodbye());
  Respond();
  EXPECT_EQ(hub_.senders(), 1u);
}

TEST_F(HeartbeatHubTest, SentGoodbyeIsKeptWhenItsStreamEnds) {
  const int32_t id = AddIntroduced("n1", sender_);
  hub_.HandleHeartbeat(id, Goodbye(2));
  ASSERT_TRUE(NextHasGoodbye());
  hub_.Remove(id);
  hub_.Restart();
  EXPECT_TRUE(NextHasGoodbye());
}

TEST_F(HeartbeatHubTest, GoodbyeOfADetachedNodeIsSentWithItsLastStatement) {
  const int32_t introduced = AddIntroduced("n1", sender_);
  Add("n2", sender_);
  statement_ = errors::NotAttached("n1");
  Leave(introduced);
  hub_.Restart();
  const auto request = hub_.Next();
  ASSERT_TRUE(request);
  ASSERT_EQ(request->senders_size(), 2);
  EXPECT_TRUE(request->senders(0).beat().goodbye());
  EXPECT_EQ(request->senders(0).attach_statement(), "statement");
  EXPECT_EQ(request->senders(1).attach_statement(), "statement");
}

TEST_F(HeartbeatHubTest, GoodbyesOfOneNodeLeaveRoomForOthers) {
  for (int i = 0; i < 100'001; ++i) hub_.Remove(Add("n1", nullptr, Goodbye(1)));
  EXPECT_EQ(hub_.senders(), 64u);
  Add("n2", sender_);
  EXPECT_EQ(hub_.senders(), 65u);
}

TEST_F(HeartbeatHubTest, RejectedSenderLosesItsStreamWithTheReason) {
  const int32_t id = AddIntroduced("n1", sender_);
  v1::RelayHeartbeatsResponse response;
  auto& rejected = *response.add_refused();
  rejected.set_id(id);
  rejected.set_code(static_cast<int>(absl::StatusCode::kPermissionDenied));
  rejected.mutable_detail()->set_reason("IDENTITY_REVOKED");
  hub_.HandleResponse(response);
  ASSERT_TRUE(sender_->end);
  EXPECT_EQ(ReasonOf(*sender_->end), "IDENTITY_REVOKED");
  EXPECT_EQ(hub_.senders(), 0u);
}

TEST_F(HeartbeatHubTest, ProbeReachesItsSender) {
  const int32_t id = AddIntroduced("n1", sender_);
  v1::RelayHeartbeatsResponse response;
  response.add_probes(id);
  response.add_probes(id + 1);
  hub_.HandleResponse(response);
  EXPECT_EQ(sender_->probes, 1);
}

TEST_F(HeartbeatHubTest, IntervalOfTheServiceIsTakenOver) {
  v1::RelayHeartbeatsResponse response;
  response.mutable_interval()->set_seconds(3);
  hub_.HandleResponse(response);
  EXPECT_EQ(hub_.interval(), absl::Seconds(3));
}

}  // namespace
}  // namespace muster
