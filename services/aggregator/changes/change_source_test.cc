#include "services/aggregator/changes/change_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "services/common/base/fake_clock.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

constexpr char kOther[] = "bbbbbbbbbbbbbbbb";

// Formats an event as a word, with "@" before its cursor.
std::string Word(const v1::FollowChangesResponse& event) {
  std::string word;
  switch (event.event_case()) {
    case v1::FollowChangesResponse::kSnapshotBegin:
      word = "begin";
      break;
    case v1::FollowChangesResponse::kSnapshotEnd:
      word = "end";
      break;
    case v1::FollowChangesResponse::kRun:
      word = absl::StrCat("run:", event.run().id().substr(0, 2));
      break;
    case v1::FollowChangesResponse::kPairs:
      for (const auto& pair : event.pairs().pairs()) {
        absl::StrAppend(&word, word.empty() ? "" : " ", pair.node(), "=",
                        static_cast<int>(pair.outcome()));
      }
      break;
    case v1::FollowChangesResponse::kRunDeleted:
      word = absl::StrCat("deleted:", event.run_deleted().run().substr(0, 2));
      break;
    case v1::FollowChangesResponse::kRevoked:
      word = absl::StrCat("revoked:", event.revoked().subject());
      break;
    case v1::FollowChangesResponse::kOperatorRecorded:
      word = absl::StrCat("operator:", event.operator_recorded().uri(), "<",
                          event.operator_recorded().expires().seconds());
      break;
    case v1::FollowChangesResponse::kRedelivery:
      word = absl::StrCat(event.redelivery().requested() ? "requested:" : "withdrawn:",
                          event.redelivery().run().substr(0, 2), "/", event.redelivery().node());
      break;
    case v1::FollowChangesResponse::kHeartbeat:
      word = "heartbeat";
      break;
    default:
      word = "nothing";
  }
  return event.has_cursor() ? absl::StrCat(word, "@", event.cursor()) : word;
}

class ChangeSourceTest : public ::testing::Test {
 protected:
  void Open(SqliteStoreOptions options = {}) {
    harness_ = std::make_unique<SqliteHarness>(std::move(options));
    ASSERT_TRUE(harness_->Open().ok());
  }
  void SetUp() override { Open(); }

  template <typename C>
  void Apply(C command) {
    const auto result = harness_->state().ApplyAndWait(std::move(command));
    ASSERT_TRUE(result.ok()) << result.status();
  }

  void Plan(const std::string& run, const std::vector<std::string>& nodes) {
    std::vector<PlannedPair> pairs;
    for (const std::string& node : nodes) pairs.push_back({"facts", node});
    Apply(MakeRun(run, pairs));
  }

  ChangeSource Follow(std::optional<int64_t> cursor,
                      FollowedChanges changes = FollowedChanges::kAll,
                      const std::string& feed = "") {
    std::optional<ChangeSource::Cursor> position;
    if (cursor) position = {*cursor, feed};
    return {harness_->state(), harness_->feed(),   clock_, position,
            changes,           "spiffe://f/user/", nullptr};
  }

  // Returns all events that are ready now.
  std::string ReadAll(ChangeSource& source) {
    std::vector<std::string> words;
    for (;;) {
      v1::FollowChangesResponse event;
      const auto pull = source.Next(&event);
      EXPECT_TRUE(pull.ok()) << pull.status();
      if (!pull.ok() || *pull != Pull::kMessage) break;
      words.push_back(Word(event));
    }
    return absl::StrJoin(words, " ");
  }

  int64_t Last() { return harness_->feed().Last().value(); }

  std::unique_ptr<SqliteHarness> harness_;
  FakeClock clock_;
};

TEST_F(ChangeSourceTest, StreamWithoutCursorBeginsWithASnapshot) {
  Plan(kRun, {"n1", "n2"});
  Apply(Genuine(KeyOf("n1"), "{}"));
  Apply(Revoke{{.subject = "spiffe://f/user/eve"}});
  ChangeSource source = Follow(std::nullopt);
  const int64_t before = Last();
  EXPECT_EQ(ReadAll(source),
            absl::StrCat("begin run:00 n1=2 n2=1 revoked:spiffe://f/user/eve end@", before));
  Apply(Failed(KeyOf("n2"), "broken"));
  // The result, and the run whose state changed with it.
  EXPECT_EQ(ReadAll(source), absl::StrCat("n2=3@", before + 1, " run:00@", before + 2));
}

// The status service shows these times after its restart.
TEST_F(ChangeSourceTest, PairsOfASnapshotHaveTheTimesOfTheirOutcomes) {
  Plan(kRun, {"n1", "n2"});
  Apply(Failed(KeyOf("n1"), "broken", 7'000'005));
  ChangeSource source = Follow(std::nullopt);
  v1::FollowChangesResponse event;
  while (!event.has_pairs()) {
    const auto pull = source.Next(&event);
    ASSERT_TRUE(pull.ok() && *pull == Pull::kMessage);
  }
  ASSERT_EQ(event.pairs().pairs_size(), 2);
  EXPECT_EQ(event.pairs().pairs(0).time().seconds(), 7);
  EXPECT_EQ(event.pairs().pairs(0).time().nanos(), 5000);
  EXPECT_FALSE(event.pairs().pairs(1).has_time()) << "pending";
}

TEST_F(ChangeSourceTest, StreamWithCursorContinuesWithoutSnapshot) {
  Plan(kRun, {"n1", "n2"});
  const int64_t cursor = Last();
  Apply(Revoke{{.subject = "spiffe://f/user/eve"}});
  ChangeSource source = Follow(cursor);
  EXPECT_EQ(ReadAll(source), absl::StrCat("revoked:spiffe://f/user/eve@", cursor + 1));
}

TEST_F(ChangeSourceTest, CursorOfAnotherFeedBeginsWithASnapshot) {
  Plan(kRun, {"n1"});
  const int64_t cursor = Last();
  ChangeSource first = Follow(std::nullopt);
  v1::FollowChangesResponse begin;
  ASSERT_TRUE(first.Next(&begin).ok());
  const std::string feed = begin.snapshot_begin().feed();
  EXPECT_NE(feed, "");
  ChangeSource same = Follow(cursor, FollowedChanges::kAll, feed);
  EXPECT_EQ(ReadAll(same), "");
  ChangeSource other = Follow(cursor, FollowedChanges::kAll, "restored");
  EXPECT_EQ(ReadAll(other), absl::StrCat("begin run:00 n1=1 end@", cursor));
}

TEST_F(ChangeSourceTest, ChangesOfManyPairsShareMessages) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 1200; ++i) nodes.push_back(absl::StrCat("n", i));
  Plan(kRun, nodes);
  ChangeSource source = Follow(Last());
  Apply(TimeOutRun{.run = kRun, .error = "late", .at = 3'000'005});
  std::vector<int> sizes;
  int64_t cursor = 0;
  for (;;) {
    v1::FollowChangesResponse event;
    const auto pull = source.Next(&event);
    if (!pull.ok() || *pull != Pull::kMessage) break;
    if (event.has_pairs()) {
      sizes.push_back(event.pairs().pairs_size());
      EXPECT_EQ(event.pairs().pairs(0).time().nanos(), 5000);
    }
    EXPECT_GT(event.cursor(), cursor);
    cursor = event.cursor();
  }
  EXPECT_EQ(sizes, (std::vector<int>{500, 500, 200}));
  EXPECT_EQ(cursor, Last());
}

// A message names its run and its plugin once.
TEST_F(ChangeSourceTest, PairsOfEachPluginHaveTheirOwnMessages) {
  Apply(MakeRun(kRun, {{"facts", "n1"}, {"facts", "n2"}, {"logs", "n1"}}));
  ChangeSource source = Follow(std::nullopt);
  std::vector<std::string> messages;
  for (;;) {
    v1::FollowChangesResponse event;
    const auto pull = source.Next(&event);
    if (!pull.ok() || *pull != Pull::kMessage) break;
    if (!event.has_pairs()) continue;
    EXPECT_EQ(event.pairs().run(), kRun);
    messages.push_back(absl::StrCat(event.pairs().plugin(), ": ", Word(event)));
  }
  EXPECT_EQ(messages, (std::vector<std::string>{"facts: n1=1 n2=1", "logs: n1=1"}));
}

// A message has a limit for the texts of errors.
TEST_F(ChangeSourceTest, LongErrorsAreSplitOverMessages) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 400; ++i) nodes.push_back(absl::StrCat("n", i));
  Plan(kRun, nodes);
  Apply(TimeOutRun{.run = kRun, .error = std::string(4000, 'x'), .at = 5});
  ChangeSource source = Follow(std::nullopt);
  int messages = 0, pairs = 0;
  for (;;) {
    v1::FollowChangesResponse event;
    const auto pull = source.Next(&event);
    if (!pull.ok() || *pull != Pull::kMessage) break;
    EXPECT_LT(event.ByteSizeLong(), 512u * 1024);
    messages += event.has_pairs() ? 1 : 0;
    pairs += event.pairs().pairs_size();
  }
  EXPECT_EQ(pairs, 400);
  EXPECT_GT(messages, 5);
}

// A follower that disconnects within a new run's pairs must begin with the run again.
TEST_F(ChangeSourceTest, CursorOfANewRunIsOnItsLastPair) {
  ChangeSource source = Follow(0);
  Plan(kRun, {"n1", "n2"});
  Apply(Genuine(KeyOf("n2"), "{}"));
  const std::string words = ReadAll(source);
  EXPECT_TRUE(words.starts_with("run:00 n1=1 n2=2@1 ")) << words;
  EXPECT_TRUE(words.find(" n2=2@2") != std::string::npos) << words;
}

TEST_F(ChangeSourceTest, FollowerOfRunsGetsNoPairs) {
  Plan(kRun, {"n1", "n2"});
  ChangeSource source = Follow(std::nullopt, FollowedChanges::kRuns);
  EXPECT_EQ(ReadAll(source), absl::StrCat("begin run:00 end@", Last()));
  Plan(kOther, {"n1"});
  EXPECT_EQ(ReadAll(source), absl::StrCat("run:bb@", Last()));
  Apply(Genuine(KeyOf("n1"), "{}"));
  EXPECT_EQ(ReadAll(source), absl::StrCat("run:00@", Last()));  // it is running now
}

TEST_F(ChangeSourceTest, RequestedRedeliveriesAreSentToFollowersOfPairs) {
  Plan(kRun, {"n1"});
  Apply(Genuine(KeyOf("n1"), "{}"));
  Apply(RecordDamage{.key = KeyOf("n1"), .generation = 1, .damage = "missing"});
  ChangeSource all = Follow(std::nullopt);
  ChangeSource runs = Follow(std::nullopt, FollowedChanges::kRuns);
  EXPECT_EQ(ReadAll(all), absl::StrCat("begin run:00 n1=2 requested:00/n1 end@", Last()));
  EXPECT_EQ(ReadAll(runs), absl::StrCat("begin run:00 end@", Last()));
  Apply(RecordDamage{.key = KeyOf("n1"), .generation = 1});
  EXPECT_EQ(ReadAll(all), absl::StrCat("withdrawn:00/n1@", Last() - 1, " run:00@", Last()));
  EXPECT_EQ(ReadAll(runs), absl::StrCat("run:00@", Last()));
}

TEST_F(ChangeSourceTest, OperatorsAreSentWithTheirNewestCertificate) {
  const auto record = [this](const std::string& uri, const std::string& serial, int64_t seconds,
                             bool of_operator) {
    Apply(RecordIssued{.issued = {.uri = uri,
                                  .issuer = "i",
                                  .serial = serial,
                                  .issued_at = seconds,
                                  .expires_at = seconds * 1'000'000},
                       .of_operator = of_operator});
  };
  record("spiffe://f/user/ann", "1", 7, true);
  record("spiffe://f/service/jobs/j", "2", 8, false);
  ChangeSource source = Follow(std::nullopt, FollowedChanges::kIdentities);
  EXPECT_EQ(ReadAll(source), absl::StrCat("begin operator:spiffe://f/user/ann<7 end@", Last()));
  record("spiffe://f/user/ann", "3", 9, true);
  EXPECT_EQ(ReadAll(source), absl::StrCat("operator:spiffe://f/user/ann<9@", Last()));
}

TEST_F(ChangeSourceTest, FollowerOfIdentitiesGetsNothingElse) {
  Plan(kRun, {"n1", "n2"});
  Apply(Revoke{{.subject = "spiffe://f/user/eve"}});
  ChangeSource source = Follow(std::nullopt, FollowedChanges::kIdentities);
  EXPECT_EQ(ReadAll(source), absl::StrCat("begin revoked:spiffe://f/user/eve end@", Last()));
  Plan(kOther, {"n1"});
  Apply(Genuine(KeyOf("n1"), "{}"));
  Apply(EndRun{.run = kOther, .at = 1});
  Apply(DeleteRun{.run = kOther, .at = 2});
  EXPECT_EQ(ReadAll(source), "");
  // A follower that reconnects does not read them again.
  const int64_t passed = Last();
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(ReadAll(source), absl::StrCat("heartbeat@", passed));
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(ReadAll(source), "heartbeat");
  Apply(Revoke{{.subject = "spiffe://f/user/bob"}});
  EXPECT_EQ(ReadAll(source), absl::StrCat("revoked:spiffe://f/user/bob@", Last()));
}

// Otherwise the revocation would wait until the next change.
TEST_F(ChangeSourceTest, RevocationAfterManyOtherChangesIsSentAtOnce) {
  const int64_t first = Last();
  Plan(kRun, {"n1"});
  for (int i = 0; i < 1200; ++i) Apply(PinRun{.run = kRun, .pinned = i % 2 == 0, .at = i});
  Apply(Revoke{{.subject = "spiffe://f/user/eve"}});
  ChangeSource source = Follow(first, FollowedChanges::kIdentities);
  EXPECT_EQ(ReadAll(source), absl::StrCat("heartbeat@", first + 500, " heartbeat@", first + 1000,
                                          " revoked:spiffe://f/user/eve@", Last()));
}

TEST_F(ChangeSourceTest, RunDeletedMeanwhileIsOnlyReportedAsDeleted) {
  ChangeSource source = Follow(0);
  Plan(kRun, {"n1"});
  Apply(EndRun{.run = kRun, .at = 1});
  Apply(DeleteRun{.run = kRun, .at = 2});
  EXPECT_EQ(ReadAll(source), absl::StrCat("deleted:00@", Last()));
}

// A status service that catches up would show the run as complete, with a pending pair.
TEST_F(ChangeSourceTest, RunThatEndedMeanwhileEndsAfterItsResults) {
  Plan(kRun, {"n1", "n2"});
  ChangeSource source = Follow(Last());
  Apply(Genuine(KeyOf("n1"), "{}"));  // the run is running now: a change of the run
  Apply(Genuine(KeyOf("n2"), "{}"));
  const int64_t results = (*harness_->state().GetRun(kRun))->last_result_change;
  Apply(SealRun{.run = kRun, .begun_at_change = results, .at = 9});
  EXPECT_EQ(ReadAll(source),
            absl::StrCat("n1=2 n2=2@", results, " run:00@", results + 1, " run:00@", results + 2));
}

TEST_F(ChangeSourceTest, SnapshotOmitsPairsOfRunsThatHaveEnded) {
  Plan(kRun, {"n1", "n2"});
  Apply(Genuine(KeyOf("n1"), "{}"));
  Apply(EndRun{.run = kRun, .at = 1});
  Plan(kOther, {"n3"});
  ChangeSource source = Follow(std::nullopt);
  EXPECT_EQ(ReadAll(source), absl::StrCat("begin run:bb run:00 n3=1 end@", Last()));
}

// A follower that catches up gets the run as it is now. It asks for the pairs if it needs them.
TEST_F(ChangeSourceTest, NewRunThatHasEndedIsSentWithoutItsPairs) {
  ChangeSource source = Follow(0);
  Plan(kRun, {"n1"});
  Apply(EndRun{.run = kRun, .at = 1});
  EXPECT_EQ(ReadAll(source), "run:00@1 run:00@2");
}

TEST_F(ChangeSourceTest, PairsOfOneRunAreSentOnRequest) {
  Plan(kRun, {"n1", "n2"});
  Apply(Failed(KeyOf("n2"), "broken"));
  Apply(EndRun{.run = kRun, .at = 1});
  Plan(kOther, {"n3"});
  ChangeSource source(harness_->state(), harness_->feed(), clock_, kRun);
  EXPECT_EQ(ReadAll(source), "n1=1 n2=3");
  v1::FollowChangesResponse event;
  EXPECT_EQ(*source.Next(&event), Pull::kEnd);
}

TEST_F(ChangeSourceTest, IdleStreamSendsAHeartbeat) {
  ChangeSource source = Follow(0);
  EXPECT_EQ(ReadAll(source), "");
  clock_.Advance(absl::Seconds(5));
  EXPECT_EQ(ReadAll(source), "heartbeat");
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(ReadAll(source), "");
}

TEST_F(ChangeSourceTest, CompactedCursorGetsASnapshot) {
  Open({.retained_changes = 5});
  Plan(kRun, {"n1"});
  for (int i = 0; i < 30; ++i) Apply(Revoke{{.subject = absl::StrCat("spiffe://f/user/u", i)}});
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (harness_->feed().Read(1, 1).ok() && absl::Now() < end) std::this_thread::yield();
  ChangeSource source = Follow(1);
  const std::string words = ReadAll(source);
  EXPECT_TRUE(words.starts_with("begin run:00 n1=1 revoked:")) << words;
  EXPECT_TRUE(words.ends_with(absl::StrCat(" end@", Last()))) << words;
}

}  // namespace
}  // namespace muster
