#include "services/status/board/watch_source.h"

#include <map>
#include <memory>
#include <string>

#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/status/board/board_fixture.h"

namespace muster {
namespace {

using testing::kRun;

absl::StatusOr<Pull> Next(WatchSource& source, v1::WatchStatusResponse* message) {
  std::string bytes;
  const auto pull = source.Next(&bytes);
  EXPECT_TRUE(message->ParseFromString(bytes));
  return pull;
}

// One watcher with what it knows: what a client makes of the messages.
struct Watcher {
  std::unique_ptr<WatchSource> source;
  std::map<std::string, v1::PairStatus> pairs;
  v1::RunStatus status;
  std::string cursor;
  int messages = 0;
  int resets = 0;
  int woken = 0;
  absl::StatusOr<Pull> last = Pull::kWait;

  // Takes all that there is.
  void Read() {
    v1::WatchStatusResponse message;
    for (;;) {
      last = Next(*source, &message);
      if (!last.ok() || *last != Pull::kMessage) return;
      ++messages;
      if (message.reset()) {
        ++resets;
        pairs.clear();
      }
      EXPECT_LE(message.pairs_size(), 2000);
      for (const v1::PairStatus& pair : message.pairs()) {
        pairs[pair.plugin() + "/" + pair.node()] = pair;
      }
      if (message.has_status()) status = message.status();
      if (!message.cursor().empty()) cursor = message.cursor();
    }
  }
};

class WatchSourceTest : public testing::BoardFixture {
 protected:
  absl::StatusOr<std::unique_ptr<Watcher>> TryWatch(const std::string& cursor = "",
                                                    const std::string& run = kRun,
                                                    bool omit_pairs = false) {
    v1::WatchStatusRequest request;
    request.set_run(run);
    request.set_cursor(cursor);
    request.set_omit_pairs(omit_pairs);
    auto watcher = std::make_unique<Watcher>();
    ASSIGN_OR_RETURN(watcher->source,
                     WatchSource::Make(board_, hub_, clock_, request, "spiffe://f/user/ann",
                                       [woken = &watcher->woken] { ++*woken; }));
    return watcher;
  }

  std::unique_ptr<Watcher> Watch(const std::string& cursor = "") { return *TryWatch(cursor); }
};

TEST_F(WatchSourceTest, WatcherGetsSnapshotThenChangesThenTheEnd) {
  Start({"n1", "n2"});
  const auto watcher = Watch();
  watcher->Read();
  EXPECT_EQ(watcher->messages, 1);
  EXPECT_EQ(watcher->resets, 1);
  EXPECT_EQ(watcher->pairs.size(), 2u);
  EXPECT_EQ(watcher->status.counts().pending(), 2);
  EXPECT_EQ(*watcher->last, Pull::kWait);

  SetPair("n1", v1::OUTCOME_GENUINE, 1);
  clock_.Advance(kWatchPace);
  EXPECT_EQ(watcher->woken, 1);
  watcher->Read();
  EXPECT_EQ(watcher->messages, 2);
  EXPECT_EQ(watcher->resets, 1);
  EXPECT_EQ(watcher->pairs["facts/n1"].outcome(), v1::OUTCOME_GENUINE);
  EXPECT_EQ(watcher->status.counts().pending(), 1);

  SetPair("n2", v1::OUTCOME_TIMED_OUT, 1);
  SetRun(MakeRun(kRun, v1::RUN_STATE_COMPLETE));
  clock_.Advance(kWatchPace);
  watcher->Read();
  EXPECT_EQ(watcher->pairs["facts/n2"].outcome(), v1::OUTCOME_TIMED_OUT);
  EXPECT_EQ(watcher->status.state(), v1::RUN_STATE_COMPLETE);
  EXPECT_EQ(*watcher->last, Pull::kEnd);
}

TEST_F(WatchSourceTest, WatcherGetsAtMostFourRoundsASecond) {
  Start({"n1"});
  const auto watcher = Watch();
  for (int i = 1; i <= 400; ++i) {
    ASSERT_TRUE(Report("n1", 1000, i).ok());
    watcher->Read();  // however often it asks
    clock_.Advance(absl::Milliseconds(10));
  }
  EXPECT_LE(watcher->messages, 4 * 4 + 1);
  EXPECT_GE(watcher->messages, 4 * 3);
  clock_.Advance(absl::Seconds(1));
  watcher->Read();
  EXPECT_EQ(watcher->pairs["facts/n1"].progress().completed(), 400);
}

TEST_F(WatchSourceTest, SlowReaderGetsTheNewestChangeOfEachPair) {
  Start({"n1", "n2"});
  const auto watcher = Watch();
  watcher->Read();
  for (int i = 1; i <= 5000; ++i) {
    ASSERT_TRUE(Report("n1", 10'000, i).ok());
    ASSERT_TRUE(i % 2 == 1 || Report("n2", 10'000, i).ok());
  }
  clock_.Advance(absl::Minutes(1));
  const int before = watcher->messages;
  watcher->Read();
  EXPECT_EQ(watcher->messages, before + 1);
  EXPECT_EQ(watcher->pairs["facts/n1"].progress().completed(), 5000);
  EXPECT_EQ(watcher->pairs["facts/n2"].progress().completed(), 5000);
}

TEST_F(WatchSourceTest, LargeSnapshotHasOneCursorAtItsEnd) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 4500; ++i) nodes.push_back("n" + std::to_string(i));
  Start(nodes);
  const auto watcher = Watch();
  v1::WatchStatusResponse message;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(*Next(*watcher->source, &message), Pull::kMessage);
    EXPECT_EQ(message.reset(), i == 0);
    EXPECT_EQ(message.pairs_size(), 2000);
    EXPECT_EQ(message.cursor(), "");
    // A pair that changes after it was sent is sent again after the snapshot.
    if (i == 0) SetPair(message.pairs(0).node(), v1::OUTCOME_GENUINE, 1);
  }
  ASSERT_EQ(*Next(*watcher->source, &message), Pull::kMessage);
  EXPECT_EQ(message.pairs_size(), 500);
  EXPECT_NE(message.cursor(), "");
  clock_.Advance(absl::Seconds(1));
  ASSERT_EQ(*Next(*watcher->source, &message), Pull::kMessage);
  ASSERT_EQ(message.pairs_size(), 1);
  EXPECT_EQ(message.pairs(0).outcome(), v1::OUTCOME_GENUINE);
}

TEST_F(WatchSourceTest, CursorResumesAfterItsMessage) {
  Start({"n1", "n2"});
  const auto first = Watch();
  first->Read();
  ASSERT_TRUE(Report("n2", 10, 1).ok());
  const auto second = Watch(first->cursor);
  second->Read();
  EXPECT_EQ(second->resets, 0);
  ASSERT_EQ(second->pairs.size(), 1u);
  EXPECT_EQ(second->pairs.count("facts/n2"), 1u);
  EXPECT_EQ(second->status.counts().pending(), 2) << "the summary is sent at once";
}

TEST_F(WatchSourceTest, CursorOfAnotherProcessOrRunStartsASnapshot) {
  Start({"n1"});
  const auto first = Watch();
  first->Read();
  const auto unknown = Watch("0123456789ab.1");
  unknown->Read();
  EXPECT_EQ(unknown->resets, 1);
  SetRun(MakeRun("000000000000000f"));
  const auto other = *TryWatch(first->cursor, "000000000000000f");
  other->Read();
  EXPECT_EQ(other->resets, 1);
}

TEST_F(WatchSourceTest, InventedCursorIsRejected) {
  Start({"n1"});
  const auto first = Watch();
  first->Read();
  const std::string epoch = first->cursor.substr(0, first->cursor.find('.'));
  for (const std::string& cursor :
       {std::string("garbage"), std::string("."), epoch, epoch + ".", epoch + ".-1",
        epoch + ".999999999", epoch + ".1x", epoch + ".99999999999999999999999",
        std::string("zzzzzzzzzzzz.1"), std::string(5000, '1'), std::string("\0.\0", 3)}) {
    EXPECT_EQ(ReasonOf(TryWatch(cursor).status()), "INVALID_CURSOR") << cursor.substr(0, 40);
  }
}

TEST_F(WatchSourceTest, WatcherWithoutPairsGetsTheRunWhenItChanges) {
  Start({"n1", "n2"});
  const auto watcher = *TryWatch("", kRun, true);
  watcher->Read();
  EXPECT_EQ(watcher->messages, 1);
  EXPECT_TRUE(watcher->pairs.empty());
  ASSERT_TRUE(Report("n1", 10, 1).ok());
  clock_.Advance(absl::Seconds(1));
  watcher->Read();
  EXPECT_EQ(watcher->messages, 2) << "one more pair runs";
  ASSERT_TRUE(Report("n1", 10, 2).ok());
  clock_.Advance(absl::Seconds(1));
  watcher->Read();
  EXPECT_EQ(watcher->messages, 2) << "its progress is no news of the run";
  const auto later = Watch(watcher->cursor);
  later->Read();
  EXPECT_EQ(later->pairs.size(), 2u) << "no pair was sent before that cursor";
}

TEST_F(WatchSourceTest, UnchangedRunIsRepeatedEveryFewSeconds) {
  Start({"n1"});
  const auto watcher = Watch();
  watcher->Read();
  Pass(absl::Seconds(5));
  clock_.Advance(absl::Seconds(1));
  EXPECT_GE(watcher->woken, 1);
  watcher->Read();
  EXPECT_EQ(watcher->messages, 2);
}

TEST_F(WatchSourceTest, DeletedRunEndsItsWatchers) {
  Start({"n1"});
  const auto watcher = Watch();
  watcher->Read();
  DeleteRun();
  clock_.Advance(kWatchPace);
  EXPECT_EQ(watcher->woken, 1);
  watcher->Read();
  EXPECT_EQ(ReasonOf(watcher->last.status()), "RUN_NOT_FOUND");
  EXPECT_EQ(ReasonOf(TryWatch().status()), "RUN_NOT_FOUND");
}

TEST_F(WatchSourceTest, WatcherOfEndedRunWaitsForItsPairs) {
  v1::Run run = MakeRun(kRun, v1::RUN_STATE_COMPLETE);
  run.mutable_counts()->set_planned(1);
  Begin();
  SetRun(run);
  End();
  const auto watcher = Watch();
  const auto other = Watch("garbage");
  watcher->Read();
  EXPECT_EQ(*watcher->last, Pull::kWait);
  EXPECT_EQ(watcher->woken, 0);
  ASSERT_EQ(reads_.size(), 1);
  v1::FollowChangesResponse event;
  event.mutable_pairs()->set_run(run.id());
  event.mutable_pairs()->set_plugin("facts");
  auto* pair = event.mutable_pairs()->add_pairs();
  pair->set_node("n1");
  pair->set_outcome(v1::OUTCOME_GENUINE);
  reads_[0].add(event);
  reads_[0].done(absl::OkStatus());
  EXPECT_EQ(watcher->woken, 1);
  watcher->Read();
  EXPECT_EQ(watcher->pairs.size(), 1u);
  EXPECT_EQ(watcher->status.counts().genuine(), 1);
  EXPECT_EQ(*watcher->last, Pull::kEnd);
  other->Read();
  EXPECT_EQ(ReasonOf(other->last.status()), "INVALID_CURSOR");
}

TEST_F(WatchSourceTest, WatcherOfEndedRunLearnsWhyItsPairsCannotBeRead) {
  v1::Run run = MakeRun(kRun, v1::RUN_STATE_FAILED);
  run.mutable_counts()->set_planned(1);
  Begin();
  SetRun(run);
  End();
  const auto watcher = Watch();
  reads_.at(0).done(absl::UnavailableError("no connection"));
  EXPECT_EQ(watcher->woken, 1);
  watcher->Read();
  EXPECT_EQ(ReasonOf(watcher->last.status()), "PAIRS_NOT_LOADED");
}

// The end was in the part of the feed that the snapshot replaces.
TEST_F(WatchSourceTest, WatcherOfRunThatEndedBeforeTheSnapshotConnectsAgain) {
  v1::Run run = MakeRun();
  run.mutable_counts()->set_planned(1);
  Start(run, {"n1"});
  const auto watcher = Watch();
  watcher->Read();
  run.set_state(v1::RUN_STATE_COMPLETE);
  Begin();
  SetRun(run);
  End();
  watcher->Read();
  EXPECT_EQ(ReasonOf(watcher->last.status()), "STATUS_NOT_READY");
}

TEST_F(WatchSourceTest, WatcherOfAnotherRunIsNotWoken) {
  Start({"n1"});
  SetRun(MakeRun("000000000000000f"));
  auto watcher = Watch();
  watcher->Read();
  SetRun(MakeRun("000000000000000f"));
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(watcher->woken, 0);
  EXPECT_EQ(hub_.watchers(), 1);
  watcher.reset();
  EXPECT_EQ(hub_.watchers(), 0);
}

}  // namespace
}  // namespace muster
