#include "services/relay/runs/run_offers.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/proto_time.h"
#include "services/relay/testing/recorded_link.h"
#include "services/relay/upstream/upstream.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class RunOffersTest : public ::testing::Test {
 protected:
  std::shared_ptr<RecordedLink> Attach(const std::string& name, bool is_relay = false) {
    auto link = std::make_shared<RecordedLink>();
    EXPECT_TRUE(topology_.Attach(AttachedEntry(name, "root", clock_.Now(), is_relay), link).ok());
    return link;
  }
  // A run with the plugins "p", which nodes run, "once" and "image".
  void SendRun(v1::RunState state = v1::RUN_STATE_RUNNING) {
    v1::FollowChangesResponse event;
    v1::Run& run = *event.mutable_run();
    run.set_id("r");
    run.set_state(state);
    run.mutable_deadline()->set_seconds(7);
    for (const char* name : {"p", "once", "image"}) run.add_plugins()->set_name(name);
    run.mutable_plugins(0)->set_definition_yaml("definition");
    run.mutable_plugins(1)->set_once(true);
    run.mutable_plugins(2)->set_has_image(true);
    Handle(event);
  }
  void SendPairs(const std::vector<std::string>& nodes, const std::string& plugin = "p",
                 v1::Outcome outcome = v1::OUTCOME_PENDING) {
    v1::FollowChangesResponse event;
    event.mutable_pairs()->set_run("r");
    event.mutable_pairs()->set_plugin(plugin);
    for (const std::string& node : nodes) {
      auto& pair = *event.mutable_pairs()->add_pairs();
      pair.set_node(node);
      pair.set_outcome(outcome);
    }
    Handle(event);
  }
  void SendEnded(size_t id, v1::RunState state = v1::RUN_STATE_CANCELLED) {
    v1::FollowChangesResponse event;
    event.mutable_run()->set_id(absl::StrCat(id));
    event.mutable_run()->set_state(state);
    event.mutable_run()->mutable_deadline()->set_seconds(static_cast<int64_t>(100 + id));
    Handle(event);
  }
  // Returns "r/p: n1 n2" for each offer, "r ended", and "welcome".
  static std::vector<std::string> Sent(RecordedLink& child) {
    std::vector<std::string> texts;
    for (const v1::AttachResponse& message : child.Take()) {
      if (message.has_welcome()) {
        texts.emplace_back("welcome");
        continue;
      }
      if (message.has_collection_ended()) {
        texts.push_back(message.collection_ended().run() + " ended");
        continue;
      }
      const v1::CollectionOffer& offer = message.collection();
      std::string text = absl::StrCat(offer.run(), "/", offer.plugins(0).name(), ":");
      for (const std::string& node : offer.nodes()) absl::StrAppend(&text, " ", node);
      texts.push_back(std::move(text));
    }
    return texts;
  }

  void Handle(const v1::FollowChangesResponse& event) {
    offers_.HandleChange(event, [this] {
      v1::AttachResponse welcome;
      welcome.mutable_welcome();
      for (const auto& child : topology_.Children()) child->Send(welcome);
    });
  }
  void BeginSnapshot() {
    v1::FollowChangesResponse begin;
    begin.mutable_snapshot_begin();
    Handle(begin);
  }
  void EndSnapshot() {
    v1::FollowChangesResponse end;
    end.mutable_snapshot_end();
    Handle(end);
  }

  FakeClock clock_{absl::FromUnixSeconds(0)};
  Topology topology_{{.name = "root"}, clock_};
  RunOffers offers_{topology_, clock_};
};

TEST_F(RunOffersTest, PendingPairIsOfferedToItsNode) {
  const auto n1 = Attach("n1");
  const auto n2 = Attach("n2");
  SendRun();
  SendPairs({"n1"});
  const auto sent = n1->Take();
  ASSERT_EQ(sent.size(), 1u);
  const v1::CollectionOffer& offer = sent[0].collection();
  EXPECT_EQ(offer.run(), "r");
  EXPECT_EQ(offer.plugins(0).definition_yaml(), "definition");
  EXPECT_EQ(offer.deadline().seconds(), 7);
  EXPECT_THAT(offer.nodes(), ElementsAre("n1"));
  EXPECT_THAT(Sent(*n2), IsEmpty());
}

TEST_F(RunOffersTest, OffersOfABranchGoToItsRelayTogether) {
  const auto relay = Attach("r1", /*is_relay=*/true);
  ASSERT_TRUE(topology_
                  .ApplyUpdate("r1",
                               {AttachedEntry("n1", "r1", clock_.Now()),
                                AttachedEntry("n2", "r1", clock_.Now())},
                               {}, true)
                  .ok());
  SendRun();
  SendPairs({"n1", "n2", "unreachable"});
  EXPECT_THAT(Sent(*relay), ElementsAre("r/p: n1 n2"));
}

TEST_F(RunOffersTest, PluginsThatNodesDoNotRunAreNotOffered) {
  const auto n1 = Attach("n1");
  SendRun();
  SendPairs({"n1"}, "once");
  SendPairs({"n1"}, "image");
  EXPECT_THAT(Sent(*n1), IsEmpty());
}

TEST_F(RunOffersTest, NodeReceivesItsOfferAgainUntilThereIsAnOutcome) {
  const auto n1 = Attach("n1");
  SendRun();
  SendPairs({"n1"});
  SendPairs({"n1"});
  EXPECT_THAT(Sent(*n1), ElementsAre("r/p: n1")) << "a repeated event is no news";
  offers_.OnReachable({"n1"});
  EXPECT_THAT(Sent(*n1), ElementsAre("r/p: n1"));
  SendPairs({"n1"}, "p", v1::OUTCOME_GENUINE);
  offers_.OnReachable({"n1"});
  EXPECT_THAT(Sent(*n1), IsEmpty());
}

// Its agent crashed, and is started again while the run waits for other nodes.
TEST_F(RunOffersTest, NodeWhosePairTimedOutReceivesItsOfferAtItsReturn) {
  const auto n1 = Attach("n1");
  SendRun();
  SendPairs({"n1"});
  SendPairs({"n1"}, "p", v1::OUTCOME_TIMED_OUT);
  EXPECT_THAT(Sent(*n1), ElementsAre("r/p: n1"));
  offers_.OnReachable({"n1"});
  EXPECT_THAT(Sent(*n1), ElementsAre("r/p: n1"));
  SendPairs({"n1"}, "p", v1::OUTCOME_ERROR);
  offers_.OnReachable({"n1"});
  EXPECT_THAT(Sent(*n1), IsEmpty());
}

TEST_F(RunOffersTest, EndOfARunIsSentToAllChildren) {
  const auto n1 = Attach("n1");
  const auto n2 = Attach("n2");
  SendRun();
  SendRun(v1::RUN_STATE_CANCELLED);
  EXPECT_THAT(Sent(*n1), ElementsAre("r ended"));
  EXPECT_THAT(Sent(*n2), ElementsAre("r ended"));
  SendRun(v1::RUN_STATE_CANCELLED);
  EXPECT_THAT(Sent(*n1), IsEmpty());
}

// A node may still deliver a late result, but there is no time to begin.
TEST_F(RunOffersTest, RunInPostProcessingHasNotEndedAndIsNotOffered) {
  const auto n1 = Attach("n1");
  SendRun();
  SendPairs({"n1"});
  EXPECT_THAT(Sent(*n1), ElementsAre("r/p: n1"));
  SendPairs({"n1"}, "p", v1::OUTCOME_TIMED_OUT);
  SendRun(v1::RUN_STATE_POST_PROCESSING);
  BeginSnapshot();
  SendRun(v1::RUN_STATE_POST_PROCESSING);
  SendPairs({"n1"}, "p", v1::OUTCOME_TIMED_OUT);
  EndSnapshot();
  offers_.OnReachable({"n1"});
  EXPECT_THAT(Sent(*n1), IsEmpty());
  EXPECT_THAT(offers_.EndedRuns(), IsEmpty());
  SendRun(v1::RUN_STATE_COMPLETE);
  EXPECT_THAT(Sent(*n1), ElementsAre("r ended"));
  EXPECT_THAT(offers_.EndedRuns(), ElementsAre("r"));
}

TEST_F(RunOffersTest, SnapshotIsOfferedAtItsEnd) {
  const auto n1 = Attach("n1");
  BeginSnapshot();
  SendRun();
  SendPairs({"n1"});
  offers_.OnReachable({"n1"});
  EXPECT_THAT(Sent(*n1), IsEmpty());
  EndSnapshot();
  EXPECT_THAT(Sent(*n1), ElementsAre("r/p: n1"));
}

TEST_F(RunOffersTest, EndOfARunIsRememberedUntilADayAfterItsDeadline) {
  SendRun();
  EXPECT_THAT(offers_.EndedRuns(), IsEmpty());
  SendRun(v1::RUN_STATE_CANCELLED);
  EXPECT_THAT(offers_.EndedRuns(), ElementsAre("r"));
  clock_.Advance(RunOffers::kEndRemembered + absl::Seconds(8));
  SendRun(v1::RUN_STATE_CANCELLED);
  EXPECT_THAT(offers_.EndedRuns(), IsEmpty());
}

TEST_F(RunOffersTest, EndOfARunThatEndsLongAfterItsDeadlineIsRemembered) {
  SendRun();
  SendRun(v1::RUN_STATE_POST_PROCESSING);
  clock_.Advance(absl::Hours(25));
  SendRun(v1::RUN_STATE_COMPLETE);
  EXPECT_THAT(offers_.EndedRuns(), ElementsAre("r"));
}

TEST_F(RunOffersTest, LateEndThatASnapshotRevealsIsRemembered) {
  clock_.Advance(absl::Hours(25));
  v1::FollowChangesResponse event;
  event.mutable_run()->set_id("r");
  event.mutable_run()->set_state(v1::RUN_STATE_COMPLETE);
  ToProto(clock_.Now(), event.mutable_run()->mutable_end_time());
  BeginSnapshot();
  Handle(event);
  EndSnapshot();
  EXPECT_THAT(offers_.EndedRuns(), ElementsAre("r"));
}

TEST_F(RunOffersTest, EndsOfTheRunsWithTheLatestDeadlinesAreRemembered) {
  for (size_t i = 0; i <= kMaxEndedRuns; ++i) SendEnded(i);
  EXPECT_EQ(offers_.EndedRuns().size(), kMaxEndedRuns);
  EXPECT_THAT(offers_.EndedRuns(), Not(Contains("0")));
}

TEST_F(RunOffersTest, RunWhoseEndIsLateIsAnnounced) {
  const auto n1 = Attach("n1");
  SendRun();
  clock_.Advance(RunOffers::kEndRemembered + absl::Seconds(8));
  SendRun(v1::RUN_STATE_COMPLETE);
  EXPECT_THAT(Sent(*n1), ElementsAre("r ended"));
}

// This relay was restarted, or had no connection to the aggregator, when the run ended.
TEST_F(RunOffersTest, EndThatASnapshotRevealsIsAnnounced) {
  const auto n1 = Attach("n1");
  BeginSnapshot();
  SendRun(v1::RUN_STATE_CANCELLED);
  EXPECT_THAT(Sent(*n1), IsEmpty());
  EndSnapshot();
  EXPECT_THAT(Sent(*n1), ElementsAre("r ended"));
  EXPECT_THAT(offers_.EndedRuns(), ElementsAre("r"));
}

TEST_F(RunOffersTest, RunThatIsMissingInASnapshotHasEnded) {
  const auto n1 = Attach("n1");
  SendRun();
  BeginSnapshot();
  EndSnapshot();
  EXPECT_THAT(Sent(*n1), ElementsAre("r ended"));
  EXPECT_THAT(offers_.EndedRuns(), ElementsAre("r"));
}

TEST_F(RunOffersTest, DeletedRunHasEnded) {
  const auto n1 = Attach("n1");
  SendRun();
  v1::FollowChangesResponse deleted;
  deleted.mutable_run_deleted()->set_run("r");
  Handle(deleted);
  EXPECT_THAT(Sent(*n1), ElementsAre("r ended"));
  EXPECT_THAT(offers_.EndedRuns(), ElementsAre("r"));
}

// The next snapshot lists the runs again that are no longer remembered.
TEST_F(RunOffersTest, EndsThatAreNotRememberedAreNotAnnounced) {
  const auto n1 = Attach("n1");
  for (int i = 0; i < 2; ++i) {
    BeginSnapshot();
    for (size_t run = 0; run < kMaxEndedRuns + 2; ++run) SendEnded(run);
    EndSnapshot();
    EXPECT_EQ(Sent(*n1).size(), i == 0 ? kMaxEndedRuns : 0);
  }
}

TEST_F(RunOffersTest, EndOfAnOfferedRunIsAnnouncedEvenIfItIsNotRemembered) {
  const auto n1 = Attach("n1");
  SendRun();
  BeginSnapshot();
  SendRun(v1::RUN_STATE_CANCELLED);
  for (size_t run = 0; run < kMaxEndedRuns; ++run) SendEnded(run);
  EndSnapshot();
  EXPECT_THAT(offers_.EndedRuns(), Not(Contains("r")));
  EXPECT_THAT(Sent(*n1), Contains("r ended"));
}

TEST_F(RunOffersTest, RunOfARestoredAggregatorHasNotEnded) {
  const auto n1 = Attach("n1");
  SendRun(v1::RUN_STATE_CANCELLED);
  EXPECT_THAT(Sent(*n1), ElementsAre("r ended"));
  BeginSnapshot();
  SendRun();
  SendPairs({"n1"});
  EndSnapshot();
  EXPECT_THAT(offers_.EndedRuns(), IsEmpty());
  EXPECT_THAT(Sent(*n1), ElementsAre("welcome", "r/p: n1")) << "first the list without the run";
}

TEST_F(RunOffersTest, EndInAnInterruptedSnapshotIsNotAnnouncedIfTheNextOneHasTheRun) {
  const auto n1 = Attach("n1");
  BeginSnapshot();
  SendRun(v1::RUN_STATE_CANCELLED);
  BeginSnapshot();
  SendRun();
  EndSnapshot();
  EXPECT_THAT(Sent(*n1), Not(Contains("r ended")));
}

TEST_F(RunOffersTest, EndedRunsAreNotKnownDuringASnapshot) {
  const auto n1 = Attach("n1");
  SendRun(v1::RUN_STATE_CANCELLED);
  EXPECT_THAT(Sent(*n1), ElementsAre("r ended"));
  BeginSnapshot();
  EXPECT_THAT(offers_.EndedRuns(), IsEmpty());
  SendRun(v1::RUN_STATE_CANCELLED);
  EndSnapshot();
  EXPECT_THAT(offers_.EndedRuns(), ElementsAre("r"));
  EXPECT_THAT(Sent(*n1), ElementsAre("welcome")) << "its list may be empty";
  BeginSnapshot();
  SendRun(v1::RUN_STATE_CANCELLED);
  EndSnapshot();
  EXPECT_THAT(Sent(*n1), IsEmpty()) << "no list was sent meanwhile";
}

TEST_F(RunOffersTest, EndOfARunFollowsAnOfferThatWasPreparedBeforeIt) {
  SendRun();
  SendPairs({"n1"});
  const auto n1 = std::make_shared<HookedLink>();
  ASSERT_TRUE(topology_.Attach(AttachedEntry("n1", "root", clock_.Now()), n1).ok());
  n1->before_first = [this] { SendRun(v1::RUN_STATE_CANCELLED); };
  offers_.OnReachable({"n1"});
  EXPECT_THAT(Sent(*n1), ElementsAre("r ended", "r/p: n1", "r ended"));
}

TEST_F(RunOffersTest, OfferDuringASnapshotThatListsTheRunIsNotFollowedByItsEnd) {
  SendRun();
  SendPairs({"n1"});
  const auto n1 = std::make_shared<HookedLink>();
  ASSERT_TRUE(topology_.Attach(AttachedEntry("n1", "root", clock_.Now()), n1).ok());
  n1->before_first = [this] { BeginSnapshot(); };
  offers_.OnReachable({"n1"});
  EXPECT_THAT(Sent(*n1), ElementsAre("r/p: n1"));
}

}  // namespace
}  // namespace muster
