#include "services/relay/runs/redelivery_requests.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/relay/testing/recorded_link.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RedeliveryRequestsTest : public ::testing::Test {
 protected:
  std::shared_ptr<RecordedLink> Attach(const std::string& name) {
    auto link = std::make_shared<RecordedLink>();
    EXPECT_TRUE(topology_.Attach(AttachedEntry(name, "root", clock_.Now(), false), link).ok());
    return link;
  }
  void Send(const std::string& node, bool requested = true, const std::string& run = "r") {
    v1::FollowChangesResponse event;
    event.mutable_redelivery()->set_run(run);
    event.mutable_redelivery()->set_plugin("p");
    event.mutable_redelivery()->set_node(node);
    event.mutable_redelivery()->set_requested(requested);
    requests_.HandleChange(event);
  }
  void SendSnapshot(const std::vector<std::string>& nodes) {
    v1::FollowChangesResponse event;
    event.mutable_snapshot_begin();
    requests_.HandleChange(event);
    for (const std::string& node : nodes) Send(node);
    event.mutable_snapshot_end();
    requests_.HandleChange(event);
  }
  // Returns the requests that arrived as "run/plugin/node".
  static std::vector<std::string> Received(RecordedLink& link) {
    std::vector<std::string> received;
    for (const v1::AttachResponse& message : link.Take()) {
      const v1::CollectionOffer& offer = message.collection();
      EXPECT_TRUE(offer.redelivery());
      for (const std::string& node : offer.nodes()) {
        received.push_back(absl::StrCat(offer.run(), "/", offer.plugins(0).name(), "/", node));
      }
    }
    return received;
  }

  FakeClock clock_;
  Topology topology_{{.name = "root"}, clock_};
  RedeliveryRequests requests_{topology_, clock_, /*max_requests=*/2};
};

TEST_F(RedeliveryRequestsTest, NodeIsAskedAtOnceAndWheneverItIsAttached) {
  const auto n1 = Attach("n1");
  const auto n2 = Attach("n2");
  Send("n1");
  EXPECT_THAT(Received(*n1), ElementsAre("r/p/n1"));
  EXPECT_THAT(Received(*n2), IsEmpty());
  requests_.OnReachable({"n1", "n2"});
  EXPECT_THAT(Received(*n1), ElementsAre("r/p/n1"));
  EXPECT_THAT(Received(*n2), IsEmpty());
}

TEST_F(RedeliveryRequestsTest, UnansweredRequestIsRepeatedAfterATimeThatDoubles) {
  const auto n1 = Attach("n1");
  Send("n1");
  Received(*n1);
  absl::Duration pause = RedeliveryRequests::kFirstRepeat;
  for (int i = 0; i < 12; ++i) {
    clock_.Advance(pause - absl::Seconds(1));
    requests_.Tick();
    EXPECT_THAT(Received(*n1), IsEmpty()) << pause;
    clock_.Advance(absl::Seconds(1));
    requests_.Tick();
    EXPECT_THAT(Received(*n1), ElementsAre("r/p/n1")) << pause;
    pause = std::min(2 * pause, RedeliveryRequests::kMaxRepeat);
  }
  requests_.OnReachable({"n1"});  // the time begins again
  Received(*n1);
  clock_.Advance(RedeliveryRequests::kFirstRepeat);
  SendSnapshot({});
  requests_.Tick();
  EXPECT_THAT(Received(*n1), IsEmpty());
}

TEST_F(RedeliveryRequestsTest, RequestsThatAreDueTogetherAreRepeatedInPieces) {
  RedeliveryRequests many(topology_, clock_);
  const auto n1 = Attach("n1");
  for (size_t i = 0; i <= RedeliveryRequests::kRepeatsAtOnce; ++i) {
    v1::FollowChangesResponse event;
    event.mutable_redelivery()->set_run(absl::StrCat("r", i));
    event.mutable_redelivery()->set_plugin("p");
    event.mutable_redelivery()->set_node("n1");
    event.mutable_redelivery()->set_requested(true);
    many.HandleChange(event);
  }
  Received(*n1);
  clock_.Advance(RedeliveryRequests::kFirstRepeat);
  many.Tick();
  EXPECT_EQ(Received(*n1).size(), RedeliveryRequests::kRepeatsAtOnce);
  many.Tick();
  EXPECT_EQ(Received(*n1).size(), 1U);
  many.Tick();
  EXPECT_THAT(Received(*n1), IsEmpty());
}

TEST_F(RedeliveryRequestsTest, WithdrawnRequestIsNotRepeated) {
  const auto n1 = Attach("n1");
  Send("n1");
  Send("n1", /*requested=*/false);
  Send("n1", /*requested=*/false);  // unknown
  Received(*n1);
  requests_.OnReachable({"n1"});
  clock_.Advance(RedeliveryRequests::kMaxRepeat);
  requests_.Tick();
  EXPECT_THAT(Received(*n1), IsEmpty());
}

TEST_F(RedeliveryRequestsTest, SnapshotReplacesTheRequests) {
  const auto n1 = Attach("n1");
  const auto n2 = Attach("n2");
  Send("n1");
  Received(*n1);
  SendSnapshot({"n2"});
  EXPECT_THAT(Received(*n1), IsEmpty());
  EXPECT_THAT(Received(*n2), ElementsAre("r/p/n2"));
}

TEST_F(RedeliveryRequestsTest, RequestsOfARunEndWithItUnlessItIsSealed) {
  const auto n1 = Attach("n1");
  for (const v1::RunState state :
       {v1::RUN_STATE_COMPLETE, v1::RUN_STATE_CANCELLED, v1::RUN_STATE_FAILED}) {
    Send("n1");
    v1::FollowChangesResponse event;
    event.mutable_run()->set_id("r");
    event.mutable_run()->set_state(state);
    requests_.HandleChange(event);
    Received(*n1);
    requests_.OnReachable({"n1"});
    EXPECT_EQ(Received(*n1).empty(), state != v1::RUN_STATE_COMPLETE);
  }
  Send("n1");
  v1::FollowChangesResponse event;
  event.mutable_run_deleted()->set_run("r");
  requests_.HandleChange(event);
  Received(*n1);
  requests_.OnReachable({"n1"});
  EXPECT_THAT(Received(*n1), IsEmpty());
}

TEST_F(RedeliveryRequestsTest, RequestsBeyondTheLimitAreSentOnceAndNotRemembered) {
  const auto n3 = Attach("n3");
  Send("n1");
  Send("n2");
  Send("n3");
  EXPECT_THAT(Received(*n3), ElementsAre("r/p/n3"));
  requests_.OnReachable({"n3"});
  EXPECT_THAT(Received(*n3), IsEmpty());
  Send("n1", /*requested=*/false);
  Send("n3");
  Received(*n3);
  requests_.OnReachable({"n3"});
  EXPECT_THAT(Received(*n3), ElementsAre("r/p/n3"));
}

}  // namespace
}  // namespace muster
