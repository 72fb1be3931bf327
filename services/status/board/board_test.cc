#include "services/status/board/board.h"

#include <map>
#include <memory>
#include <string>

#include "services/common/base/error.h"
#include "services/status/board/board_fixture.h"

namespace muster {
namespace {

using testing::kRun;

class BoardTest : public testing::BoardFixture {
 protected:
  absl::Status GetStatus(StatusQuery query) {
    v1::RunStatus status;
    return Ask(query, &status);
  }
};

TEST_F(BoardTest, BoardIsNotReadyBeforeTheFirstSnapshotEnds) {
  Begin();
  SetRun(MakeRun());
  EXPECT_EQ(ReasonOf(board_.Resolve("").status()), "STATUS_NOT_READY");
  EXPECT_EQ(ReasonOf(board_.Find(kRun).status()), "STATUS_NOT_READY");
  EXPECT_EQ(ReasonOf(SendHeartbeat(Online("n1"))), "STATUS_NOT_READY");
  EXPECT_FALSE(board_.Ready().ok());
  End();
  EXPECT_EQ(*board_.Resolve(""), kRun);
  EXPECT_TRUE(board_.Ready().ok());
}

TEST_F(BoardTest, NewRunIsNotShownBeforeTheFeedHasListedItsPairs) {
  Begin();
  End();
  v1::Run run = MakeRun();
  run.mutable_counts()->set_planned(2);
  SetRun(run);
  EXPECT_EQ(ReasonOf(board_.Find(kRun).status()), "STATUS_NOT_READY");
  SetPair("n1", v1::OUTCOME_PENDING, 0);
  EXPECT_EQ(ReasonOf(board_.Find(kRun).status()), "STATUS_NOT_READY");
  SetPair("n2", v1::OUTCOME_PENDING, 0);
  EXPECT_TRUE(board_.Find(kRun).ok());
}

TEST_F(BoardTest, BeginOfAStateFromBeforeTheServiceIsNotKnown) {
  Begin();
  SetRun(MakeRun());
  SetPair("n1", v1::OUTCOME_TIMED_OUT, 1);
  End();
  SetPair("n2", v1::OUTCOME_TIMED_OUT, 1);
  EXPECT_FALSE(Pair("n1").has_reason_since());
  EXPECT_TRUE(Pair("n2").has_reason_since());
}

TEST_F(BoardTest, OutcomesOfASnapshotKeepTheirTimes) {
  Begin();
  SetRun(MakeRun());
  Event event;
  event.mutable_pairs()->set_run(kRun);
  event.mutable_pairs()->set_plugin("facts");
  for (const v1::Outcome outcome : {v1::OUTCOME_GENUINE, v1::OUTCOME_TIMED_OUT}) {
    auto* pair = event.mutable_pairs()->add_pairs();
    pair->set_node("n" + std::to_string(event.pairs().pairs_size()));
    pair->set_outcome(outcome);
    pair->set_generation(1);
    *pair->mutable_time() = ToTimestamp(clock_.Now() - absl::Minutes(29));
  }
  board_.Apply(event);
  SetPair("n3", v1::OUTCOME_GENUINE, 1);  // an earlier aggregator sends no time
  End();
  EXPECT_EQ(FromProto(Pair("n1").update_time()), clock_.Now() - absl::Minutes(29));
  EXPECT_EQ(FromProto(Pair("n2").update_time()), clock_.Now() - absl::Minutes(29));
  EXPECT_EQ(FromProto(Pair("n2").reason_since()), clock_.Now() - absl::Minutes(29));
  EXPECT_FALSE(Pair("n3").has_update_time());
}

TEST_F(BoardTest, EmptyNameResolvesToTheNewestRun) {
  Begin();
  SetRun(MakeRun("000000000000000f"));
  clock_.Advance(absl::Seconds(1));
  SetRun(MakeRun("0000000000000001"));
  End();
  EXPECT_EQ(*board_.Resolve(""), "0000000000000001");
  DeleteRun("0000000000000001");
  EXPECT_EQ(*board_.Resolve(""), "000000000000000f");
  DeleteRun("000000000000000f");
  EXPECT_EQ(ReasonOf(board_.Resolve("").status()), "RUN_NOT_FOUND");
  EXPECT_EQ(gone_.size(), 2u);
}

TEST_F(BoardTest, RepeatedChangeIsCountedOnce) {
  Start({"n1", "n2"});
  SetPair("n1", v1::OUTCOME_ERROR, 1);
  SetPair("n1", v1::OUTCOME_GENUINE, 2);
  SetPair("n1", v1::OUTCOME_ERROR, 1);  // an older change, sent again
  const v1::RunStatus status = Get();
  EXPECT_EQ(status.plugins(0).counts().planned(), 2);
  EXPECT_EQ(status.plugins(0).counts().genuine(), 1);
  EXPECT_EQ(status.plugins(0).counts().errors(), 0);
  EXPECT_EQ(status.plugins(0).counts().pending(), 1);
  EXPECT_DOUBLE_EQ(status.percent_complete(), 0.5);
  EXPECT_DOUBLE_EQ(status.plugins(0).percent_complete(), 0.5);
  EXPECT_EQ(status.counts().ShortDebugString(), status.plugins(0).counts().ShortDebugString());
}

TEST_F(BoardTest, PairsOfABatchHaveTheirOwnTimes) {
  Start({"n1", "n2", "n3"});
  clock_.Advance(absl::Seconds(10));
  Event event;
  *event.mutable_time() = ToTimestamp(clock_.Now());
  event.mutable_pairs()->set_run(kRun);
  event.mutable_pairs()->set_plugin("facts");
  for (const int i : {1, 2}) {
    auto* pair = event.mutable_pairs()->add_pairs();
    pair->set_node("n" + std::to_string(i));
    pair->set_outcome(i == 1 ? v1::OUTCOME_GENUINE : v1::OUTCOME_ERROR);
    pair->set_generation(i);
    *pair->mutable_time() = ToTimestamp(clock_.Now() - absl::Seconds(i));
  }
  board_.Apply(event);
  EXPECT_EQ(Get().counts().genuine(), 1);
  EXPECT_EQ(Get().counts().errors(), 1);
  EXPECT_EQ(Get().counts().pending(), 1);
  for (const int i : {1, 2}) {
    EXPECT_EQ(FromProto(Pair("n" + std::to_string(i)).update_time()),
              clock_.Now() - absl::Seconds(i));
  }
}

TEST_F(BoardTest, SnapshotReplacesOutcomesAndKeepsActivities) {
  Begin();
  SetRun(MakeRun());
  SetRun(MakeRun("000000000000000f"));
  SetPair("n1", v1::OUTCOME_GENUINE, 3);
  SetPair("n2");
  End();
  ASSERT_TRUE(Report("n2", 10, 4).ok());
  Begin();
  SetRun(MakeRun());
  SetPair("n1", v1::OUTCOME_PENDING, 0);  // the aggregator was set back to an older state
  SetPair("n2");
  EXPECT_TRUE(board_.Find("000000000000000f").ok()) << "gone only when the snapshot is whole";
  End();
  EXPECT_EQ(Pair("n2").progress().completed(), 4);
  EXPECT_EQ(Pair("n1").outcome(), v1::OUTCOME_PENDING);
  EXPECT_EQ(Get().counts().pending(), 2);
  EXPECT_EQ(ReasonOf(board_.Find("000000000000000f").status()), "RUN_NOT_FOUND");
}

TEST_F(BoardTest, PagesCoverEveryPairOnceInOrder) {
  Start({"b", "a", "d", "c", "e"});
  SetPair("x", v1::OUTCOME_PENDING, 0, "a-plugin");
  std::string nodes;
  std::string token;
  do {
    const v1::RunStatus status = Get(2, token);
    EXPECT_LE(status.pairs_size(), 2);
    for (const auto& pair : status.pairs()) nodes += pair.node();
    token = status.next_page_token();
  } while (!token.empty());
  EXPECT_EQ(nodes, "xabcde");
  for (const char* invented : {"invented", "/", "a/b/c"}) {
    StatusQuery query;
    query.run = kRun;
    query.page_size = 2;
    query.page_token = invented;
    EXPECT_EQ(ReasonOf(GetStatus(query)), "INVALID_PAGE_TOKEN") << invented;
  }
}

TEST_F(BoardTest, PageIsCompleteAcrossItsParts) {
  std::vector<std::string> nodes;
  for (int i = 1000; i < 3000; ++i) nodes.push_back("n" + std::to_string(i));
  Start(nodes);
  for (size_t i = 0; i < nodes.size(); i += 500) SetPair(nodes[i], v1::OUTCOME_ERROR, 1);
  const v1::RunStatus large = Get(10'000);
  ASSERT_EQ(large.pairs_size(), 2000);
  EXPECT_EQ(large.pairs(1).next(), "") << "words that all pairs share are left out of large pages";
  EXPECT_NE(Get(100).pairs(1).next(), "");
  StatusQuery query;
  query.run = kRun;
  query.page_size = 3;
  query.outcome = v1::OUTCOME_ERROR;
  v1::RunStatus status;
  ASSERT_TRUE(Ask(query, &status).ok());
  ASSERT_EQ(status.pairs_size(), 3);
  EXPECT_EQ(status.pairs(2).node(), "n2000");
  query.page_token = status.next_page_token();
  ASSERT_TRUE(Ask(query, &status).ok());
  ASSERT_EQ(status.pairs_size(), 1);
  EXPECT_EQ(status.next_page_token(), "");
}

TEST_F(BoardTest, CallerOfOnePairSeesNoOtherPairs) {
  Start({"n1", "n2"});
  const auto sender = Online("n2");
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  Silence(sender, v1::PRESENCE_SUSPECT, Evidence::kClosed);
  StatusQuery query;
  query.run = kRun;
  query.page_size = 100;
  query.only_plugin = "facts";
  query.only_node = "n1";
  v1::RunStatus status;
  ASSERT_TRUE(Ask(query, &status).ok());
  ASSERT_EQ(status.pairs_size(), 1);
  EXPECT_EQ(status.pairs(0).node(), "n1");
  EXPECT_EQ(status.stragglers_size(), 0);
  EXPECT_EQ(status.reasons_size(), 0);
  query.only_node = "n9";
  EXPECT_EQ(ReasonOf(GetStatus(query)), "RUN_NOT_FOUND") << "a run that does not plan it";
}

TEST_F(BoardTest, ProgressOfUnplannedPairIsRejected) {
  Start({"n1"});
  EXPECT_EQ(ReasonOf(Report("n9", 1, 1)), "PAIR_NOT_PLANNED");
  EXPECT_EQ(ReasonOf(Report("n1", -1, 0)), "INVALID_PROGRESS");
  EXPECT_EQ(ReasonOf(Report("n1", int64_t{1} << 60, 0)), "INVALID_PROGRESS");
  EXPECT_TRUE(Report("n1", 1, 1).ok());
  v1::Activity activity;
  activity.mutable_progress()->set_completed(-1);
  EXPECT_EQ(ReasonOf(board_.HandleActivity(Key("n1"), Online("n1"), activity)), "INVALID_PROGRESS");
  EXPECT_EQ(ReasonOf(board_.HandleActivity(Key("n9"), Online("n9"), {})), "PAIR_NOT_PLANNED");
  EXPECT_EQ(
      ReasonOf(board_.HandleActivity(Key("n1", "facts", "ffffffffffffffff"), Online("n1"), {})),
      "RUN_NOT_FOUND");
}

TEST_F(BoardTest, SenderIsDoneWhenAllItsPairsHaveAnOutcome) {
  Start({"n1"});
  SetPair("n1", v1::OUTCOME_PENDING, 0, "logs");
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_WORKING, "", "logs").ok());
  SetPair("n1", v1::OUTCOME_GENUINE, 1);
  EXPECT_TRUE(done_.empty());
  SetPair("n1", v1::OUTCOME_GENUINE, 1, "logs");
  EXPECT_EQ(done_, std::vector<std::string>{"n1"});
}

TEST_F(BoardTest, SenderOfATimedOutPairIsNotDone) {
  Start({"n1"});
  ASSERT_TRUE(SendHeartbeat(Online("n1")).ok());
  SetPair("n1", v1::OUTCOME_TIMED_OUT, 1);
  EXPECT_TRUE(done_.empty());
}

// They said goodbye while this service was not running.
TEST_F(BoardTest, RestoredSendersWithoutAnOpenPairAreDone) {
  std::map<std::string, std::shared_ptr<Sender>> senders;
  for (const char* node : {"ended", "delivered", "works", "timed-out", "lost"}) {
    senders[node] = Online(node);
    senders[node]->set_presence(v1::PRESENCE_UNKNOWN, clock_.MonotonicNow());
    board_.PresenceChanged(senders[node]);
    if (node != std::string("ended")) {
      board_.RestoreContact(Key(node), senders[node]->uri(), clock_.Now());
    }
  }
  Silence(senders["lost"], v1::PRESENCE_LOST, Evidence::kNone);
  Begin();
  SetRun(MakeRun("00000000000000e0", v1::RUN_STATE_CANCELLED));
  SetRun(MakeRun());
  SetPair("delivered", v1::OUTCOME_GENUINE, 1);
  SetPair("works");
  SetPair("timed-out", v1::OUTCOME_TIMED_OUT, 1);
  SetPair("lost", v1::OUTCOME_GENUINE, 1);
  End();
  EXPECT_EQ(done_, (std::vector<std::string>{"delivered", "ended"}));
}

TEST_F(BoardTest, RestoredSenderIsDoneWhenItsRunEnds) {
  for (const char* node : {"n1", "n2"}) {
    const auto sender = Online(node);
    sender->set_presence(v1::PRESENCE_UNKNOWN, clock_.MonotonicNow());
    board_.PresenceChanged(sender);
    board_.RestoreContact(Key(node), sender->uri(), clock_.Now());
    if (node == std::string("n2")) Return(sender);
  }
  Start({"n1", "n2"});
  EXPECT_TRUE(done_.empty());
  SetRun(MakeRun(kRun, v1::RUN_STATE_CANCELLED));
  EXPECT_EQ(done_, std::vector<std::string>{"n1"}) << "n2 may be lost";
  Begin();
  SetRun(MakeRun(kRun, v1::RUN_STATE_CANCELLED));
  End();
  EXPECT_EQ(done_.size(), 1u) << "its senders were looked up again";
}

TEST_F(BoardTest, NewPairOfAReturningSenderIsJudgedAfterItsHeartbeat) {
  for (const v1::Presence before : {v1::PRESENCE_OFFLINE, v1::PRESENCE_LOST}) {
    Start({"n1"});
    const auto sender = Online("n1");
    sender->set_presence(before, clock_.MonotonicNow());
    clock_.Advance(absl::Minutes(5));
    ASSERT_TRUE(SendHeartbeat(sender).ok());
    Return(sender);
    EXPECT_EQ(ReasonOfPair("n1"), "RUNNING");
    EXPECT_TRUE(events_.empty()) << events_[0].second.detail();
    DeleteRun();
  }
}

TEST_F(BoardTest, PlannedRunIsRunningAsSoonAsAnAgentWorks) {
  Start(MakeRun(kRun, v1::RUN_STATE_PLANNED), {"n1", "n2"});
  const auto sender = Online("n1");
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_CHECKING).ok());
  EXPECT_EQ(Get().state(), v1::RUN_STATE_PLANNED);
  ASSERT_TRUE(SendHeartbeat(sender, v1::PHASE_WORKING).ok());
  EXPECT_EQ(Get().state(), v1::RUN_STATE_RUNNING);
}

TEST_F(BoardTest, RestoredStateIsPresentAfterTheFirstSnapshot) {
  auto sender = Online("n1");
  sender->set_presence(v1::PRESENCE_UNKNOWN, clock_.MonotonicNow());
  board_.PresenceChanged(sender);
  board_.RestoreContact(Key("n1"), sender->uri(), clock_.Now() - absl::Minutes(5));
  v1::Progress progress;
  progress.set_completed(7);
  *progress.mutable_time() = ToTimestamp(clock_.Now() - absl::Minutes(3));
  board_.RestoreProgress(Key("n1"), progress);
  board_.RestoreProgress(Key("gone"), progress);
  Start({"n1", "n2"});
  EXPECT_EQ(ReasonOfPair("n1"), "RUNNING");
  EXPECT_EQ(Pair("n1").presence(), v1::PRESENCE_UNKNOWN);
  EXPECT_EQ(Pair("n1").progress().completed(), 7);
  EXPECT_EQ(FromProto(Pair("n1").update_time()), clock_.Now() - absl::Minutes(3));
  EXPECT_EQ(ReasonOfPair("n2"), "NOT_STARTED");
  Return(sender);
  EXPECT_EQ(Pair("n1").presence(), v1::PRESENCE_ONLINE);
}

TEST_F(BoardTest, PairThatWasSilentBeforeARestartIsAStraggler) {
  auto sender = Online("n1");
  sender->set_last_seen(clock_.MonotonicNow() - absl::Minutes(29));
  Silence(sender, v1::PRESENCE_LOST, Evidence::kAcknowledging);
  board_.RestoreContact(Key("n1"), sender->uri(), clock_.Now() - absl::Minutes(40));
  Start({"n1", "n2"});
  ASSERT_EQ(Get().stragglers_size(), 1);
  EXPECT_EQ(Get().stragglers(0).reason(), v1::REASON_NOT_RESPONDING);
  EXPECT_EQ(Get().stragglers(0).heartbeat_age().seconds(), 29 * 60);
  EXPECT_FALSE(Get().stragglers(0).has_reason_since()) << "it is not known";
}

TEST_F(BoardTest, NodesArePlannedOnesAndSenders) {
  Start({"n1", "n2", "n3"});
  SetPair("global", v1::OUTCOME_PENDING, 0, "once");
  const auto sender = Online("n2");
  sender->set_clock_skew(absl::Milliseconds(1500));
  ASSERT_TRUE(SendHeartbeat(sender).ok());
  v1::ListNodesRequest request;
  request.set_page_size(2);
  auto page = board_.ListNodes(request);
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->nodes_size(), 2);
  EXPECT_EQ(page->nodes(0).node(), "n1");
  EXPECT_EQ(page->nodes(0).presence(), v1::PRESENCE_UNSPECIFIED);
  EXPECT_EQ(page->nodes(1).presence(), v1::PRESENCE_ONLINE);
  EXPECT_EQ(page->nodes(1).clock_skew().nanos(), 500'000'000);
  request.set_page_token(page->next_page_token());
  page = board_.ListNodes(request);
  ASSERT_EQ(page->nodes_size(), 1);
  EXPECT_EQ(page->nodes(0).node(), "n3");
  EXPECT_EQ(page->next_page_token(), "");
  request.set_page_token("no/name");
  EXPECT_EQ(ReasonOf(board_.ListNodes(request).status()), "INVALID_PAGE_TOKEN");
  request.set_page_size(1001);
  EXPECT_EQ(ReasonOf(board_.ListNodes(request).status()), "INVALID_PAGE_SIZE");

  const auto node = board_.GetNode("n2");
  ASSERT_TRUE(node.ok());
  ASSERT_EQ(node->pairs_size(), 1);
  EXPECT_EQ(node->pairs(0).reason(), v1::REASON_RUNNING);
  EXPECT_EQ(node->pairs(0).run(), kRun);
  EXPECT_EQ(ReasonOf(board_.GetNode("n9").status()), "NODE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(board_.GetNode("global").status()), "NODE_NOT_FOUND");
  DeleteRun();
  EXPECT_EQ(ReasonOf(board_.GetNode("n1").status()), "NODE_NOT_FOUND");
}

}  // namespace
}  // namespace muster
