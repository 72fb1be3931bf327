#include "services/status/board/ended_runs.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/status/board/board_fixture.h"

namespace muster {
namespace {

using testing::kRun;

class EndedRunsTest : public testing::BoardFixture {
 protected:
  // A run that has ended, whose plan has so many pairs.
  v1::Run Ended(int64_t planned, const std::string& id = kRun) {
    v1::Run run = MakeRun(id, v1::RUN_STATE_COMPLETE);
    run.mutable_counts()->set_planned(planned);
    return run;
  }

  // A snapshot with the run alone.
  void Snapshot(const v1::Run& run) {
    Begin();
    SetRun(run);
    End();
  }

  void Heartbeat() {
    Event event;
    event.mutable_heartbeat();
    board_.Apply(event);
  }

  // Asks for the run, and keeps its state as text: "waits", a reason, or the number of its genuine
  // results.
  std::shared_ptr<std::string> Request(const std::string& run = kRun,
                                       const std::string& caller = "spiffe://f/user/ann") {
    auto state = std::make_shared<std::string>("waits");
    board_.FindWithPairs(run, caller,
                         [this, state](const absl::StatusOr<std::shared_ptr<RunBoard>>& got) {
                           if (!got.ok()) {
                             *state = ReasonOf(got.status());
                             return;
                           }
                           std::string bytes;
                           v1::RunStatus status;
                           StatusQuery query;
                           query.page_size = 10;
                           EXPECT_TRUE(board_.Get(**got, query, &bytes).ok());
                           EXPECT_TRUE(status.ParseFromString(bytes));
                           EXPECT_EQ(status.pairs_size(), status.counts().planned());
                           *state = std::to_string(status.counts().genuine());
                         });
    return state;
  }

  // Answers the newest read.
  void Answer(const std::vector<std::string>& nodes) {
    ASSERT_FALSE(reads_.empty());
    Event event;
    event.mutable_pairs()->set_run(reads_.back().run);
    event.mutable_pairs()->set_plugin("facts");
    for (const std::string& node : nodes) {
      auto* pair = event.mutable_pairs()->add_pairs();
      pair->set_node(node);
      pair->set_outcome(v1::OUTCOME_GENUINE);
      pair->set_generation(1);
    }
    const PairsRead read = reads_.back();
    read.add(event);
    read.done(absl::OkStatus());
  }
};

TEST_F(EndedRunsTest, RunThatEndedBeforeTheSnapshotGetsItsPairsOnRequest) {
  Snapshot(Ended(2));
  EXPECT_TRUE(board_.Ready().ok());
  EXPECT_TRUE(reads_.empty());
  const auto first = Request();
  const auto second = Request();
  EXPECT_EQ(*first, "waits");
  ASSERT_EQ(reads_.size(), 1) << "both wait for one read";
  EXPECT_EQ(reads_[0].run, kRun);
  Answer({"n1", "n2"});
  EXPECT_EQ(*first, "2");
  EXPECT_EQ(*second, "2");
  EXPECT_EQ(*Request(), "2");
  EXPECT_EQ(reads_.size(), 1);
  EXPECT_EQ(*board_.Resolve(""), kRun) << "it is the newest run, also without its pairs";
}

TEST_F(EndedRunsTest, FailedReadIsReportedAndTriedAgain) {
  Snapshot(Ended(2));
  const auto down = Request();
  reads_.back().done(absl::UnavailableError("no connection"));
  EXPECT_EQ(*down, "PAIRS_NOT_LOADED");
  const auto cut = Request();
  Answer({"n1"});
  EXPECT_EQ(*cut, "PAIRS_NOT_LOADED") << "one pair is missing";
  const auto whole = Request();
  Answer({"n1", "n2"});
  EXPECT_EQ(*whole, "2");
}

TEST_F(EndedRunsTest, OneIdentityLeavesRoomForOthersToWait) {
  Snapshot(Ended(1));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*Request(), "waits");
  EXPECT_EQ(*Request(), "TOO_MANY_WAITING_CALLS");
  const auto other = Request(kRun, "spiffe://f/user/bob");
  EXPECT_EQ(*other, "waits");
  Answer({"n1"});
  EXPECT_EQ(*other, "1");
  EXPECT_EQ(*Request(), "1");
}

TEST_F(EndedRunsTest, PairsAreDroppedTenMinutesAfterTheLastRequest) {
  v1::Run run = MakeRun();
  run.mutable_counts()->set_planned(1);
  Start(run, {"n1"});
  SetPair("n1", v1::OUTCOME_GENUINE, 1);
  SetRun(Ended(1));
  Heartbeat();
  clock_.Advance(absl::Minutes(9));
  Heartbeat();
  EXPECT_EQ(*Request(), "1");
  clock_.Advance(absl::Minutes(9));
  Heartbeat();
  EXPECT_EQ(*Request(), "1");
  EXPECT_TRUE(reads_.empty());
  EXPECT_TRUE(board_.GetNode("n1").ok());
  clock_.Advance(absl::Minutes(11));
  Heartbeat();
  EXPECT_EQ(ReasonOf(board_.GetNode("n1").status()), "NODE_NOT_FOUND") << "no active run plans it";
  EXPECT_EQ(*Request(), "waits");
  Answer({"n1"});
  EXPECT_EQ(*Request(), "1");
  EXPECT_FALSE(board_.GetNode("n1").ok());
}

TEST_F(EndedRunsTest, RunsOfWhichAnswersAreMadeAreNotDropped) {
  Snapshot(Ended(1));
  Request();
  Answer({"n1"});
  const auto used = *board_.Find(kRun);
  clock_.Advance(absl::Minutes(11));
  Heartbeat();
  EXPECT_EQ(*Request(), "1");
}

// It would show a pending pair of a complete run.
TEST_F(EndedRunsTest, SnapshotDropsPairsOfRunThatEndedMeanwhile) {
  v1::Run run = MakeRun();
  run.mutable_counts()->set_planned(2);
  Start(run, {"n1", "n2"});
  EXPECT_EQ(*Request(), "0");
  Snapshot(Ended(2));
  EXPECT_EQ(*Request(), "waits");
  Answer({"n1", "n2"});
  EXPECT_EQ(*Request(), "2");
}

// The listing of its pairs was interrupted, and the run ended before the feed continued.
TEST_F(EndedRunsTest, RunThatEndsDuringTheListingOfItsPairsDropsThem) {
  v1::Run run = MakeRun();
  run.mutable_counts()->set_planned(2);
  Snapshot(run);
  SetPair("n1");
  SetRun(Ended(2));
  SetPair("n1", v1::OUTCOME_GENUINE, 1);  // a change that the feed repeats
  EXPECT_EQ(board_.GetNode("n1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*Request(), "waits");
  Answer({"n1", "n2"});
  EXPECT_EQ(*Request(), "2");
}

TEST_F(EndedRunsTest, MessagesForRunWithoutItsPairsAreAccepted) {
  Snapshot(Ended(1));
  EXPECT_TRUE(SendHeartbeat(Online("n1")).ok());
  EXPECT_TRUE(Report("n1", 10, 1).ok());
  EXPECT_TRUE(reads_.empty());
}

TEST_F(EndedRunsTest, StoredStateIsRestoredForActiveRunsAndOnRequest) {
  Begin();
  SetRun(MakeRun("000000000000000f"));
  SetRun(Ended(1));
  End();
  EXPECT_EQ(restored_, std::vector<std::string>({"000000000000000f"}));
  Request();
  Answer({"n1"});
  EXPECT_EQ(restored_.back(), kRun);
}

TEST_F(EndedRunsTest, RunDeletedMeanwhileIsNotFound) {
  Snapshot(Ended(1));
  const auto waiting = Request();
  DeleteRun();
  reads_.back().done(board_.Find(kRun).status());
  EXPECT_EQ(*waiting, "RUN_NOT_FOUND");
}

TEST_F(EndedRunsTest, LongestUnusedRunsAboveTheLimitAreIdle) {
  RunBoard::Context context;
  context.clock = &clock_;
  context.verdicts = &verdicts_;
  context.changed = [](const std::string&) {};
  context.event = [](const std::string&, const v1::NodeEvent&) {};
  context.doubt = [] { return std::string(); };
  context.lost_relays = [] { return std::vector<const RelayState*>(); };
  context.ready_since = [] { return absl::ZeroDuration(); };
  TextBudget texts;
  context.texts = &texts;
  EndedRuns ended(clock_, nullptr, nullptr, 3);
  std::vector<std::shared_ptr<RunBoard>> runs;
  for (const char* id : {"a", "b", "c"}) {
    runs.push_back(std::make_shared<RunBoard>(id, context));
    runs.back()->SetRun(Ended(2, id));
    for (const char* node : {"n1", "n2"}) {
      v1::FollowChangesResponse::PairChanged pair;
      pair.set_node(node);
      pair.set_outcome(v1::OUTCOME_GENUINE);
      runs.back()->SetPair("facts", pair, /*live=*/false, absl::InfinitePast());
    }
    ended.MarkUsed(id);
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(ended.FindIdle(runs), std::vector<std::string>({"b", "a"}));
  ended.MarkUsed("a");
  EXPECT_EQ(ended.FindIdle(runs), std::vector<std::string>({"c", "b"}));
  EXPECT_TRUE(ended.FindIdle({runs[1]}).empty());
}

TEST_F(EndedRunsTest, WaitingRequestsAreBounded) {
  Snapshot(Ended(1));
  std::vector<std::shared_ptr<std::string>> waiting;
  for (int i = 0; i < 1000; ++i) {
    waiting.push_back(Request(kRun, absl::StrCat("spiffe://f/user/u", i / 100)));
  }
  EXPECT_EQ(*waiting.back(), "waits");
  EXPECT_EQ(*Request(), "OVERLOADED");
  Answer({"n1"});
  EXPECT_EQ(*waiting.back(), "1");
}

}  // namespace
}  // namespace muster
