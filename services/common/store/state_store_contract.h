// What every StateStore driver promises. A driver's test includes this file and instantiates
// StateStoreContract with a StoreHarnessFactory.
#ifndef MUSTER_SERVICES_COMMON_STORE_STATE_STORE_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_STATE_STORE_CONTRACT_H_

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/store/store_harness.h"

namespace muster {

class StateStoreContract : public ::testing::TestWithParam<StoreHarnessFactory> {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    const absl::Status opened = harness_->Open();
    ASSERT_TRUE(opened.ok()) << opened;
  }

  StateStore& store() { return harness_->state(); }

  template <typename C>
  typename C::Result Apply(C command) {
    auto result = store().ApplyAndWait(std::move(command));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : typename C::Result{};
  }

  void Plan(int nodes) {
    std::vector<PlannedPair> pairs;
    for (int i = 1; i <= nodes; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
    EXPECT_FALSE(Apply(MakeRun(kRun, pairs)).existed);
  }

  // A second run beside the first.
  static ResultKey Other(std::string_view node) {
    return {"bbbbbbbbbbbbbbbb", "facts", std::string(node)};
  }
  void Plan2() { Apply(MakeRun("bbbbbbbbbbbbbbbb", {{"facts", "n1"}, {"facts", "n2"}})); }

  CommitResult::Verdict Commit(CommitResult command) { return Apply(std::move(command)).verdict; }
  OpenUpload::Verdict OpenVerdict(OpenUpload command) { return Apply(std::move(command)).verdict; }

  RunView Run(std::string_view id = kRun) {
    auto run = store().GetRun(id);
    EXPECT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(run.ok() && run->has_value());
    return run.ok() && *run ? **run : RunView{};
  }

  ResultRecord Result(const ResultKey& key) {
    auto result = store().GetResult(key);
    EXPECT_TRUE(result.ok() && result->has_value()) << result.status();
    return result.ok() && *result ? **result : ResultRecord{};
  }

  // planned = pending + genuine + errors + timed_out, as numbers.
  void ExpectCounters(int64_t pending, int64_t genuine, int64_t errors, int64_t timed_out) {
    const RunRecord run = Run().run;
    EXPECT_EQ(run.pending, pending);
    EXPECT_EQ(run.genuine, genuine);
    EXPECT_EQ(run.errors, errors);
    EXPECT_EQ(run.timed_out, timed_out);
    EXPECT_EQ(run.planned, pending + genuine + errors + timed_out);
  }

  std::vector<AuditKind> AuditKinds() {
    std::vector<AuditKind> kinds;
    auto audit = store().Audit(kRun, "", 1000);
    EXPECT_TRUE(audit.ok()) << audit.status();
    for (const AuditRecord& record : audit->items) kinds.push_back(record.kind);
    return kinds;
  }

  std::unique_ptr<StoreHarness> harness_ = GetParam()();
};

using OpenVerdicts = OpenUpload::Verdict;
using CommitVerdicts = CommitResult::Verdict;

// ---- Runs ----

TEST_P(StateStoreContract, ARunIsKeptAsItWasCreated) {
  CreateRun command = MakeRun(kRun, {{"facts", "n2"}, {"facts", "n1"}, {"e2e", "global"}});
  const RunRecord given = command.run;
  EXPECT_EQ(Apply(std::move(command)).run, kRun);
  Reopen();
  const RunRecord run = Run().run;
  EXPECT_EQ(run.id, given.id);
  EXPECT_EQ(run.request_id, given.request_id);
  EXPECT_EQ(run.title, given.title);
  EXPECT_EQ(run.created_by, given.created_by);
  EXPECT_EQ(run.state, RunState::kPlanned);
  EXPECT_EQ(run.created_at, kCreated);
  EXPECT_EQ(run.deadline_at, kDeadline);
  EXPECT_EQ(run.seal_grace, kGrace);
  EXPECT_EQ(run.planned, 3);
  EXPECT_EQ(run.pending, 3);
  EXPECT_EQ(run.listener.hosts, given.listener.hosts);
  ASSERT_EQ(run.plugins.size(), 2u);
  EXPECT_EQ(run.plugins[0].definition_yaml, "a: 1\n");
  EXPECT_TRUE(run.plugins[1].once);
  EXPECT_EQ(run.plugins[1].result_format, "junit");
  EXPECT_TRUE(*store().IsPlanned(KeyOf("n1")));
  EXPECT_TRUE(*store().IsPlanned(KeyOf("global", "e2e")));
  EXPECT_FALSE(*store().IsPlanned(KeyOf("n3")));
  auto authority = store().GetAuthority(kRun);
  ASSERT_TRUE(authority.ok() && authority->has_value());
  EXPECT_EQ((*authority)->wrapped_key, std::string("\0key", 4));
  EXPECT_EQ((*authority)->fleet_signed_pem, "fleet pem");
  EXPECT_EQ((*authority)->self_signed_pem, "self pem");
  EXPECT_EQ((*authority)->ends_at, 999);
  EXPECT_FALSE(store().GetRun("ffffffffffffffff")->has_value());
  EXPECT_FALSE(store().GetAuthority("ffffffffffffffff")->has_value());
}

TEST_P(StateStoreContract, CreatingAgainGivesTheFirstRun) {
  Plan(1);
  CreateRun again = MakeRun("ffffffffffffffff", {{"facts", "other"}});
  again.run.request_id = absl::StrCat("request-", kRun);
  const auto result = Apply(std::move(again));
  EXPECT_TRUE(result.existed);
  EXPECT_EQ(result.run, kRun);
  EXPECT_FALSE(store().GetRun("ffffffffffffffff")->has_value());
  EXPECT_FALSE(*store().IsPlanned({"ffffffffffffffff", "facts", "other"}));
  // Without a request id nothing is compared.
  for (const char* id : {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"}) {
    CreateRun fresh = MakeRun(id, {{"facts", "n1"}});
    fresh.run.request_id.clear();
    EXPECT_FALSE(Apply(std::move(fresh)).existed);
  }
  // The same id for another request is a mistake of the caller.
  CreateRun clash = MakeRun(kRun, {{"facts", "n1"}});
  clash.run.request_id = "another";
  EXPECT_TRUE(absl::IsAlreadyExists(store().ApplyAndWait(std::move(clash)).status()));
}

TEST_P(StateStoreContract, APairThatIsNamedTwiceIsPlannedOnce) {
  Apply(MakeRun(kRun, {{"facts", "n1"}, {"facts", "n1"}, {"facts", "n2"}}));
  EXPECT_EQ(Run().run.planned, 2);
}

TEST_P(StateStoreContract, RunsAreListedNewestFirst) {
  for (int i = 0; i < 5; ++i) {
    CreateRun command = MakeRun(absl::StrCat("000000000000000", i), {{"facts", "n1"}});
    command.run.created_at = i < 3 ? 100 : 200;  // also with equal times
    Apply(std::move(command));
  }
  std::string ids;
  std::string token;
  do {
    auto page = store().ListRuns(token, 2);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->items.size(), 2u);
    for (const RunRecord& run : page->items) {
      ids += run.id.back();
      EXPECT_EQ(run.plugins.size(), 2u);
    }
    token = page->next;
    if (ids.size() == 2) {  // rows may go while somebody pages
      Apply(EndRun{.run = "0000000000000002", .state = RunState::kFailed});
      Apply(DeleteRun{.run = "0000000000000002"});
    }
  } while (!token.empty());
  EXPECT_EQ(ids, "4310");
  EXPECT_EQ(ReasonOf(store().ListRuns("nonsense", 2).status()), "INVALID_PAGE_TOKEN");
}

TEST_P(StateStoreContract, TheListenersPortIsSetOnce) {
  Plan(1);
  EXPECT_FALSE(Apply(ReportListener{.run = "ffffffffffffffff"}).found);
  auto now = Apply(ReportListener{
      .run = kRun, .listener = {.hosts = {}, .port = 30001, .open = true, .fault = ""}, .at = 5});
  EXPECT_TRUE(now.found);
  EXPECT_EQ(now.listener.port, 30001);
  EXPECT_EQ(now.listener.hosts.size(), 2u);
  now = Apply(ReportListener{
      .run = kRun, .listener = {.port = 30002, .open = false, .fault = "in use"}, .at = 6});
  EXPECT_EQ(now.listener.port, 30001);
  const ListenerRecord kept = Run().run.listener;
  EXPECT_EQ(kept.port, 30001);
  EXPECT_FALSE(kept.open);
  EXPECT_EQ(kept.fault, "in use");
}

TEST_P(StateStoreContract, LiveRunsAreThoseThatNeedWatching) {
  Plan(1);
  Apply(MakeRun("bbbbbbbbbbbbbbbb", {{"facts", "n1"}}));
  EXPECT_EQ(store().LiveRuns()->size(), 2u);
  Apply(EndRun{.run = kRun, .state = RunState::kCancelled, .reason = "why", .at = 9});
  EXPECT_EQ(store().LiveRuns()->size(), 2u);  // its authority is still there
  EXPECT_TRUE(Apply(WipeAuthority{.run = kRun, .at = 10}).changed);
  EXPECT_FALSE(Apply(WipeAuthority{.run = kRun, .at = 10}).changed);
  EXPECT_FALSE(store().GetAuthority(kRun)->has_value());
  auto live = store().LiveRuns();
  ASSERT_EQ(live->size(), 1u);
  EXPECT_EQ((*live)[0].run.id, "bbbbbbbbbbbbbbbb");
  EXPECT_EQ((*live)[0].run.plugins.size(), 2u);
}

TEST_P(StateStoreContract, ARunEndsOnce) {
  Plan(2);
  EXPECT_FALSE(Apply(EndRun{.run = "ffffffffffffffff"}).found);
  auto ended = Apply(EndRun{
      .run = kRun, .state = RunState::kCancelled, .reason = "stop", .actor = "ann", .at = 7});
  EXPECT_TRUE(ended.changed);
  ended = Apply(EndRun{.run = kRun, .state = RunState::kFailed, .reason = "other", .at = 8});
  EXPECT_TRUE(ended.found);
  EXPECT_FALSE(ended.changed);
  EXPECT_EQ(ended.state, RunState::kCancelled);
  EXPECT_EQ(Run().run.reason, "stop");
  EXPECT_EQ(Run().run.ended_at, 7);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u1")), OpenVerdicts::kCancelled);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "x")), CommitVerdicts::kCancelled);
  EXPECT_FALSE(Apply(TimeOutRun{.run = kRun}).changed);
  EXPECT_FALSE(Apply(SealRun{.run = kRun, .expected_change = 1000}).changed);
}

TEST_P(StateStoreContract, ADeletedRunIsGoneButForItsAudit) {
  Plan(50);
  Commit(Failed(KeyOf("n1"), "boom"));
  Commit(Genuine(KeyOf("n1"), "fine"));
  OpenVerdict(Opening(KeyOf("n2"), "u2"));
  EXPECT_FALSE(Apply(DeleteRun{.run = kRun}).deleted);
  EXPECT_TRUE(Apply(DeleteRun{.run = kRun}).found);
  Apply(EndRun{.run = kRun, .state = RunState::kFailed});
  EXPECT_TRUE(Apply(DeleteRun{.run = kRun, .actor = "ann", .at = 9}).deleted);
  EXPECT_FALSE(Apply(DeleteRun{.run = kRun}).found);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(store().GetRun(kRun)->has_value());
    EXPECT_FALSE(store().GetResult(KeyOf("n1"))->has_value());
    EXPECT_TRUE(store().History(KeyOf("n1"))->empty());
    EXPECT_FALSE(*store().IsPlanned(KeyOf("n1")));
    EXPECT_TRUE(store().ListResults({.run = kRun, .with_pending = true}, "", 10)->items.empty());
    EXPECT_FALSE(store().GetUpload("u2")->has_value());
    EXPECT_TRUE(store().OpenUploads("")->empty());
    EXPECT_FALSE(store().GetAuthority(kRun)->has_value());
    EXPECT_EQ(AuditKinds().back(), AuditKind::kRun);
    Reopen();
  }
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "x")), CommitVerdicts::kRunNotFound);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u1")), OpenVerdicts::kRunNotFound);
}

// ---- Results ----

TEST_P(StateStoreContract, AResultIsKeptAsItWasCommitted) {
  Plan(2);
  EXPECT_EQ(Result(KeyOf("n1")).outcome, Outcome::kPending);
  EXPECT_EQ(Result(KeyOf("n1")).generation, 0);
  CommitResult command = Genuine(KeyOf("n1"), std::string("a\0b", 3));
  command.result.delivery.node_unproven = true;
  command.result.delivery.vouched_by = "spiffe://f.muster/service/gateway/g";
  command.result.delivery.signature = std::string("\0sig", 4);
  command.result.delivery.signer_pem = "pem";
  const ResultRecord given = command.result;
  const auto committed = Apply(std::move(command));
  EXPECT_EQ(committed.verdict, CommitVerdicts::kCommitted);
  EXPECT_FALSE(committed.last);
  EXPECT_EQ(committed.head.generation, 1);
  EXPECT_TRUE(committed.head.body.empty());
  Reopen();
  const ResultRecord kept = Result(KeyOf("n1"));
  EXPECT_EQ(kept.key, given.key);
  EXPECT_EQ(kept.outcome, Outcome::kGenuine);
  EXPECT_EQ(kept.generation, 1);
  EXPECT_EQ(kept.size, 3);
  EXPECT_EQ(kept.crc32c, given.crc32c);
  EXPECT_EQ(kept.sha256, given.sha256);
  EXPECT_EQ(kept.body, given.body);
  EXPECT_EQ(kept.media_type, given.media_type);
  EXPECT_EQ(kept.file_name, given.file_name);
  EXPECT_EQ(kept.committed_at, given.committed_at);
  EXPECT_EQ(kept.delivery.uri, given.delivery.uri);
  EXPECT_TRUE(kept.delivery.node_unproven);
  EXPECT_EQ(kept.delivery.vouched_by, given.delivery.vouched_by);
  EXPECT_EQ(kept.delivery.signature, given.delivery.signature);
  EXPECT_EQ(kept.delivery.signer_pem, "pem");
  ExpectCounters(1, 1, 0, 0);
  EXPECT_EQ(Run().run.state, RunState::kRunning);
}

TEST_P(StateStoreContract, TheSameContentIsASuccessAnotherOneAConflict) {
  Plan(2);
  ASSERT_EQ(Commit(Genuine(KeyOf("n1"), "content")), CommitVerdicts::kCommitted);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "content")), CommitVerdicts::kSame);
  const auto refused = Apply(Genuine(KeyOf("n1"), "other"));
  EXPECT_EQ(refused.verdict, CommitVerdicts::kConflict);
  EXPECT_EQ(refused.head.sha256, Digest('t'));
  EXPECT_EQ(Result(KeyOf("n1")).body, "content");
  EXPECT_EQ(Result(KeyOf("n1")).generation, 1);
  ExpectCounters(1, 1, 0, 0);
  EXPECT_EQ(AuditKinds().back(), AuditKind::kConflict);
  // A sender that tries for ever does not fill the log.
  const size_t audited = AuditKinds().size();
  for (int i = 0; i < 5; ++i) Commit(Genuine(KeyOf("n1"), "other"));
  EXPECT_EQ(AuditKinds().size(), audited);
}

TEST_P(StateStoreContract, ContentIsComparedBySha256OrElseBySizeAndChecksum) {
  Plan(3);
  CommitResult unhashed = Genuine(KeyOf("n1"), "content");
  unhashed.result.sha256.clear();
  ASSERT_EQ(Commit(unhashed), CommitVerdicts::kCommitted);
  EXPECT_EQ(Commit(unhashed), CommitVerdicts::kSame);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "content")), CommitVerdicts::kSame);
  CommitResult other_sum = unhashed;
  ++other_sum.result.crc32c;
  EXPECT_EQ(Commit(other_sum), CommitVerdicts::kConflict);
  CommitResult other_size = unhashed;
  ++other_size.result.size;
  EXPECT_EQ(Commit(other_size), CommitVerdicts::kConflict);
  // Once both are known the checksum says nothing more.
  Apply(SetDigest{.key = KeyOf("n1"), .generation = 1, .sha256 = Digest('a')});
  CommitResult other_digest = unhashed;
  other_digest.result.sha256 = Digest('b');
  EXPECT_EQ(Commit(other_digest), CommitVerdicts::kConflict);
  other_digest.result.sha256 = Digest('a');
  EXPECT_EQ(Commit(other_digest), CommitVerdicts::kSame);
}

TEST_P(StateStoreContract, AGenuineResultReplacesAnError) {
  Plan(2);
  ASSERT_EQ(Commit(Failed(KeyOf("n1"), "crashed")), CommitVerdicts::kCommitted);
  ExpectCounters(1, 0, 1, 0);
  EXPECT_EQ(Commit(Failed(KeyOf("n1"), "crashed")), CommitVerdicts::kSame);
  EXPECT_EQ(Commit(Failed(KeyOf("n1"), "crashed again")), CommitVerdicts::kErrorKept);
  EXPECT_EQ(Result(KeyOf("n1")).error, "crashed");
  const auto replaced = Apply(Genuine(KeyOf("n1"), "fine"));
  EXPECT_EQ(replaced.verdict, CommitVerdicts::kCommitted);
  EXPECT_EQ(replaced.head.generation, 2);
  ExpectCounters(1, 1, 0, 0);
  EXPECT_EQ(Result(KeyOf("n1")).body, "fine");
  EXPECT_EQ(AuditKinds().back(), AuditKind::kReplaced);
  auto history = store().History(KeyOf("n1"));
  ASSERT_EQ(history->size(), 1u);
  EXPECT_EQ((*history)[0].generation, 1);
  EXPECT_EQ((*history)[0].error, "crashed");
  const auto late = Apply(Failed(KeyOf("n1"), "no, crashed"));
  EXPECT_EQ(late.verdict, CommitVerdicts::kErrorKept);
  EXPECT_EQ(late.head.outcome, Outcome::kGenuine);
  ExpectCounters(1, 1, 0, 0);
}

TEST_P(StateStoreContract, TheLastPairMovesTheRunOn) {
  Plan(3);
  EXPECT_FALSE(Apply(Genuine(KeyOf("n1"), "1")).last);
  EXPECT_FALSE(Apply(Failed(KeyOf("n2"), "no")).last);
  EXPECT_EQ(Run().run.state, RunState::kRunning);
  EXPECT_TRUE(Apply(Genuine(KeyOf("n3"), "3")).last);
  EXPECT_EQ(Run().run.state, RunState::kPostProcessing);
  // A genuine result still replaces the error; the run stays where it is.
  const int64_t before = Run().last_change;
  EXPECT_FALSE(Apply(Genuine(KeyOf("n2"), "2")).last);
  EXPECT_EQ(Run().run.state, RunState::kPostProcessing);
  EXPECT_GT(Run().last_change, before);
  EXPECT_FALSE(Apply(SealRun{.run = kRun, .expected_change = before}).changed);
  ExpectCounters(0, 3, 0, 0);
}

TEST_P(StateStoreContract, WhatIsNotPlannedIsRefusedAndAudited) {
  Plan(1);
  EXPECT_EQ(Commit(Genuine(KeyOf("n9"), "x")), CommitVerdicts::kNotPlanned);
  EXPECT_EQ(AuditKinds().back(), AuditKind::kUnplanned);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1", "unknown"), "u1")), OpenVerdicts::kNotPlanned);
  EXPECT_FALSE(store().GetResult(KeyOf("n9"))->has_value());
  ResultKey elsewhere = KeyOf("n1");
  elsewhere.run = "ffffffffffffffff";
  EXPECT_EQ(Commit(Genuine(elsewhere, "x")), CommitVerdicts::kRunNotFound);
  EXPECT_EQ(OpenVerdict(Opening(elsewhere, "u1")), OpenVerdicts::kRunNotFound);
  ExpectCounters(1, 0, 0, 0);
}

TEST_P(StateStoreContract, RefusalsOfARunAreRecordedUpToALimit) {
  Plan(1);
  std::promise<void> last;
  constexpr int kTries = 10'050;
  for (int i = 0; i < kTries; ++i) {
    store().Apply(Genuine(KeyOf(absl::StrCat("x", i)), "x"),
                  [&last, i](absl::StatusOr<CommitResult::Result>) {
                    if (i == kTries - 1) last.set_value();
                  });
  }
  last.get_future().wait();
  size_t records = 0;
  std::string token;
  do {
    auto page = store().Audit(kRun, token, 1000);
    ASSERT_TRUE(page.ok());
    records += page->items.size();
    token = page->next;
  } while (!token.empty());
  EXPECT_EQ(records, 10'001u);  // with the run's creation
}

TEST_P(StateStoreContract, TimeOutFillsWhatIsPending) {
  Plan(4);
  Commit(Genuine(KeyOf("n1"), "1"));
  Commit(Failed(KeyOf("n2"), "no"));
  const auto result = Apply(
      TimeOutRun{.run = kRun,
                 .error = "nothing in time",
                 .partial = {{"facts", "n3", "runs/x/part", 77}, {"facts", "n1", "runs/x/no", 1}},
                 .at = kDeadline});
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.timed_out, 2);
  ExpectCounters(0, 1, 1, 2);
  EXPECT_EQ(Run().run.state, RunState::kPostProcessing);
  const ResultRecord partial = Result(KeyOf("n3"));
  EXPECT_EQ(partial.outcome, Outcome::kTimedOut);
  EXPECT_EQ(partial.generation, 1);
  EXPECT_EQ(partial.error, "nothing in time");
  EXPECT_EQ(partial.partial_blob, "runs/x/part");
  EXPECT_EQ(partial.partial_size, 77);
  EXPECT_EQ(partial.committed_at, kDeadline);
  EXPECT_EQ(Result(KeyOf("n4")).partial_blob, "");
  EXPECT_EQ(Result(KeyOf("n1")).partial_blob, "");
  EXPECT_EQ(Result(KeyOf("n1")).outcome, Outcome::kGenuine);
  EXPECT_FALSE(Apply(TimeOutRun{.run = kRun, .error = "again", .at = kDeadline}).changed);
  EXPECT_FALSE(Apply(TimeOutRun{.run = "ffffffffffffffff"}).changed);
}

TEST_P(StateStoreContract, StragglersCountUntilTheGraceIsOver) {
  Plan(4);
  Apply(TimeOutRun{.run = kRun, .error = "late", .at = kDeadline});
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u1", 1, kDeadline + kGrace)), OpenVerdicts::kOpen);
  const auto straggler = Apply(Genuine(KeyOf("n1"), "in grace", kDeadline + kGrace));
  EXPECT_EQ(straggler.verdict, CommitVerdicts::kCommitted);
  EXPECT_EQ(straggler.head.generation, 2);
  EXPECT_FALSE(straggler.last);
  // The node's own error says more than the time-out.
  EXPECT_EQ(Commit(Failed(KeyOf("n2"), "killed", kDeadline + 1)), CommitVerdicts::kCommitted);
  ExpectCounters(0, 1, 1, 2);
  EXPECT_EQ(store().History(KeyOf("n2"))->size(), 1u);

  EXPECT_EQ(Commit(Genuine(KeyOf("n3"), "too late", kDeadline + kGrace + 1)),
            CommitVerdicts::kSealed);
  EXPECT_EQ(AuditKinds().back(), AuditKind::kLate);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n3"), "u3", 1, kDeadline + kGrace + 1)),
            OpenVerdicts::kSealed);
  ExpectCounters(0, 1, 1, 2);
  // The repetition of what was taken is no late delivery.
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "in grace", kDeadline + kGrace + 5)),
            CommitVerdicts::kSame);
}

TEST_P(StateStoreContract, ASealedRunTakesNothingMore) {
  Plan(2);
  Commit(Genuine(KeyOf("n1"), "1"));
  EXPECT_FALSE(Apply(SealRun{.run = kRun, .expected_change = 1000}).changed);  // still running
  Commit(Failed(KeyOf("n2"), "no"));
  const SealRun seal = {.run = kRun,
                        .archive = {.blob = "runs/x/archive",
                                    .file_name = "a.tar.gz",
                                    .size = 12,
                                    .sha256 = Digest('s'),
                                    .created_at = 8},
                        .expected_change = Run().last_change,
                        .at = 9};
  // What is no result does not make the archive stale.
  Apply(ReportListener{.run = kRun, .listener = {.port = 1, .open = true}});
  EXPECT_TRUE(Apply(seal).changed);
  EXPECT_FALSE(Apply(seal).changed);
  const RunRecord run = Run().run;
  EXPECT_EQ(run.state, RunState::kComplete);
  EXPECT_EQ(run.ended_at, 9);
  EXPECT_EQ(run.archive.blob, "runs/x/archive");
  EXPECT_EQ(run.archive.file_name, "a.tar.gz");
  EXPECT_EQ(run.archive.size, 12);
  EXPECT_EQ(run.archive.sha256, Digest('s'));
  EXPECT_EQ(run.archive.created_at, 8);
  EXPECT_EQ(Commit(Genuine(KeyOf("n2"), "2")), CommitVerdicts::kSealed);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "other")), CommitVerdicts::kSealed);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "1")), CommitVerdicts::kSame);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n2"), "u2")), OpenVerdicts::kSealed);
  OpenUpload again = Opening(KeyOf("n1"), "u1");
  again.upload.sha256 = Digest('1');
  EXPECT_EQ(OpenVerdict(again), OpenVerdicts::kCommitted);
}

TEST_P(StateStoreContract, ResultsAreListedInPages) {
  std::vector<PlannedPair> pairs;
  for (const char* plugin : {"b", "a", "c"}) {
    for (int i = 9; i >= 0; --i) pairs.push_back({plugin, absl::StrCat("n", i)});
  }
  Apply(MakeRun(kRun, pairs));
  for (int i = 0; i < 10; i += 2) Commit(Genuine(KeyOf(absl::StrCat("n", i), "b"), "x"));
  Commit(Failed(KeyOf("n3", "c"), "why"));

  const auto list = [&](const ResultFilter& filter, int limit) {
    std::string all;
    std::string token;
    do {
      auto page = store().ListResults(filter, token, limit);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const ResultRecord& result : page->items) {
        EXPECT_TRUE(result.body.empty());
        EXPECT_EQ(result.key.run, kRun);
        all += absl::StrCat(result.key.plugin, result.key.node.substr(1), " ");
      }
      token = page->next;
    } while (!token.empty());
    return all;
  };
  EXPECT_EQ(list({.run = kRun}, 2), "b0 b2 b4 b6 b8 c3 ");
  EXPECT_EQ(list({.run = kRun}, 100), "b0 b2 b4 b6 b8 c3 ");
  EXPECT_EQ(list({.run = kRun, .plugin = "b"}, 3), "b0 b2 b4 b6 b8 ");
  EXPECT_EQ(list({.run = kRun, .plugin = "b", .node = "n2"}, 3), "b2 ");
  EXPECT_EQ(list({.run = kRun, .node = "n3"}, 3), "c3 ");
  EXPECT_EQ(list({.run = kRun, .node = "n3", .with_pending = true}, 1), "a3 b3 c3 ");
  EXPECT_EQ(list({.run = kRun, .plugin = "a"}, 3), "");
  EXPECT_EQ(list({.run = kRun, .plugin = "a", .with_pending = true}, 7),
            "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 ");
  EXPECT_EQ(list({.run = "ffffffffffffffff", .with_pending = true}, 7), "");
  EXPECT_EQ(ReasonOf(store().ListResults({.run = kRun}, "x", 1).status()), "INVALID_PAGE_TOKEN");
  EXPECT_EQ(store().ListResults({.run = kRun, .plugin = "c"}, "", 10)->items[0].error, "why");
}

TEST_P(StateStoreContract, DigestsAreFilledInLater) {
  Plan(4);
  CommitResult unhashed = Genuine(KeyOf("n1"), "content");
  unhashed.result.sha256.clear();
  Commit(unhashed);
  unhashed.result.key.node = "n2";
  Commit(unhashed);
  Commit(Genuine(KeyOf("n3"), "hashed"));
  Commit(Failed(KeyOf("n4"), "nothing to hash"));
  auto due = store().Unhashed(kRun, 10);
  ASSERT_EQ(due->size(), 2u);
  EXPECT_EQ((*due)[0].key.node, "n1");
  EXPECT_EQ(store().Unhashed(kRun, 1)->size(), 1u);
  const int64_t before = Run().last_change;
  EXPECT_FALSE(
      Apply(SetDigest{.key = KeyOf("n1"), .generation = 2, .sha256 = Digest('d')}).changed);
  EXPECT_TRUE(Apply(SetDigest{.key = KeyOf("n1"), .generation = 1, .sha256 = Digest('d')}).changed);
  EXPECT_FALSE(
      Apply(SetDigest{.key = KeyOf("n1"), .generation = 1, .sha256 = Digest('e')}).changed);
  EXPECT_EQ(Result(KeyOf("n1")).sha256, Digest('d'));
  EXPECT_EQ(store().Unhashed(kRun, 10)->size(), 1u);
  EXPECT_EQ(Run().last_change, before);  // the archive does not become stale by it
}

TEST_P(StateStoreContract, OddTextsAreKept) {
  Plan(1);
  CommitResult command = Genuine(KeyOf("n1"), "x");
  command.result.file_name = std::string("../\xff\0'\"; DROP TABLE runs;--", 24);
  const std::string name = command.result.file_name;
  Commit(std::move(command));
  EXPECT_EQ(Result(KeyOf("n1")).file_name, name);
}

TEST_P(StateStoreContract, AnInlineBodyHasALimit) {
  Plan(2);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), std::string(kInlineLimit, 'x'))),
            CommitVerdicts::kCommitted);
  EXPECT_EQ(Result(KeyOf("n1")).body.size(), static_cast<size_t>(kInlineLimit));
  const auto refused =
      store().ApplyAndWait(Genuine(KeyOf("n2"), std::string(kInlineLimit + 1, 'x')));
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_EQ(Result(KeyOf("n2")).outcome, Outcome::kPending);
}

// ---- Uploads ----

TEST_P(StateStoreContract, AnUploadIsTakenOverByALaterOpen) {
  Plan(2);
  auto opened = Apply(Opening(KeyOf("n1"), "u1"));
  EXPECT_EQ(opened.verdict, OpenVerdicts::kOpen);
  EXPECT_TRUE(opened.created);
  EXPECT_EQ(opened.upload.id, "u1");
  EXPECT_EQ(opened.upload.epoch, 1);
  EXPECT_EQ(Run().run.state, RunState::kRunning);
  OpenUpload again = Opening(KeyOf("n1"), "u2");
  again.upload.size = 10;
  again.upload.sha256 = Digest('x');
  again.upload.expires_at = 777;
  opened = Apply(again);
  EXPECT_EQ(opened.verdict, OpenVerdicts::kOpen);
  EXPECT_FALSE(opened.created);
  EXPECT_EQ(opened.upload.id, "u1");
  EXPECT_EQ(opened.upload.epoch, 2);
  EXPECT_TRUE(opened.abandoned.empty());
  Reopen();
  auto kept = store().GetUpload("u1");
  ASSERT_TRUE(kept->has_value());
  EXPECT_EQ((*kept)->epoch, 2);
  EXPECT_EQ((*kept)->size, 10);  // known only now
  EXPECT_EQ((*kept)->sha256, Digest('x'));
  EXPECT_EQ((*kept)->expires_at, 777);
  EXPECT_EQ((*kept)->file_name, "r.tar.gz");
  EXPECT_EQ((*kept)->key, KeyOf("n1"));
  EXPECT_FALSE(store().GetUpload("u2")->has_value());

  CommitResult dead = Genuine(KeyOf("n1"), "x");
  dead.upload_id = "u1";
  dead.epoch = 1;
  EXPECT_EQ(Commit(dead), CommitVerdicts::kTakenOver);
  dead.epoch = 2;
  EXPECT_EQ(Commit(dead), CommitVerdicts::kCommitted);
  EXPECT_FALSE(store().GetUpload("u1")->has_value());
  EXPECT_EQ(Commit(dead), CommitVerdicts::kSame);  // the answer was lost
}

TEST_P(StateStoreContract, AHigherAttemptStartsAnew) {
  Plan(1);
  Apply(Opening(KeyOf("n1"), "u1", 3));
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u0", 2)), OpenVerdicts::kStaleAttempt);
  const auto opened = Apply(Opening(KeyOf("n1"), "u2", 4));
  EXPECT_TRUE(opened.created);
  EXPECT_EQ(opened.upload.id, "u2");
  EXPECT_EQ(opened.upload.epoch, 1);
  EXPECT_EQ(opened.abandoned, "u1");
  EXPECT_FALSE(store().GetUpload("u1")->has_value());
  EXPECT_EQ(store().OpenUploads(kRun)->size(), 1u);
  // Also when the later one is gone again.
  EXPECT_TRUE(Apply(AbandonUpload{.upload_id = "u2"}).found);
  EXPECT_FALSE(Apply(AbandonUpload{.upload_id = "u2"}).found);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u3", 3)), OpenVerdicts::kStaleAttempt);
  EXPECT_EQ(Apply(Opening(KeyOf("n1"), "u4", 4)).upload.id, "u4");
  CommitResult lost = Genuine(KeyOf("n1"), "x");
  lost.upload_id = "u2";
  lost.epoch = 1;
  EXPECT_EQ(Commit(lost), CommitVerdicts::kTakenOver);
}

TEST_P(StateStoreContract, OpenTellsOfAResultThatIsThere) {
  Plan(2);
  Commit(Genuine(KeyOf("n1"), "content"));
  auto opened = Apply(Opening(KeyOf("n1"), "u1"));
  EXPECT_EQ(opened.verdict, OpenVerdicts::kCommitted);
  ASSERT_TRUE(opened.committed.has_value());
  EXPECT_EQ(opened.committed->sha256, Digest('t'));
  EXPECT_TRUE(opened.committed->body.empty());
  Commit(Failed(KeyOf("n2"), "error"));
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n2"), "u2")), OpenVerdicts::kOpen);
}

TEST_P(StateStoreContract, AnUploadEndsWithItsVerdict) {
  Plan(3);
  Commit(Genuine(KeyOf("n2"), "first"));
  const std::vector<std::pair<std::string, CommitResult>> cases = {
      {"n1", Genuine(KeyOf("n1"), "new")}, {"n3", Failed(KeyOf("n3"), "why")}};
  for (auto [node, command] : cases) {
    Apply(Opening(KeyOf(node), "u" + node));
    command.upload_id = "u" + node;
    command.epoch = 1;
    EXPECT_EQ(Commit(command), CommitVerdicts::kCommitted);
    EXPECT_FALSE(store().GetUpload("u" + node)->has_value());
  }
  // A small result came first while an upload was open.
  Plan2();
  Apply(Opening(Other("n1"), "v1"));
  Apply(Genuine(Other("n1"), "small"));
  EXPECT_TRUE(store().GetUpload("v1")->has_value());
  CommitResult late = Genuine(Other("n1"), "large");
  late.upload_id = "v1";
  late.epoch = 1;
  EXPECT_EQ(Commit(late), CommitVerdicts::kConflict);
  EXPECT_FALSE(store().GetUpload("v1")->has_value());
}

TEST_P(StateStoreContract, OpenUploadsAreListed) {
  Plan(3);
  Plan2();
  Apply(Opening(KeyOf("n1"), "u1"));
  Apply(Opening(KeyOf("n2"), "u2"));
  Apply(Opening(Other("n1"), "v1"));
  EXPECT_EQ(store().OpenUploads(kRun)->size(), 2u);
  EXPECT_EQ(store().OpenUploads("")->size(), 3u);
  // They stay after the end, for their bytes to be removed.
  Apply(EndRun{.run = kRun, .state = RunState::kCancelled});
  EXPECT_EQ(store().OpenUploads(kRun)->size(), 2u);
}

// ---- Identities and audit ----

TEST_P(StateStoreContract, RevocationsAreKept) {
  const RevocationRecord revocation = {"spiffe://f.muster/user/bob", "left", "ann", 5};
  EXPECT_TRUE(Apply(Revoke{revocation}).changed);
  EXPECT_FALSE(Apply(Revoke{revocation}).changed);
  EXPECT_TRUE(Apply(Revoke{{"abcd:01", "", "ann", 6}}).changed);
  Reopen();
  auto all = store().Revocations();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].subject, "spiffe://f.muster/user/bob");
  EXPECT_EQ((*all)[0].reason, "left");
  EXPECT_EQ((*all)[0].revoked_by, "ann");
  EXPECT_EQ((*all)[0].at, 5);
  EXPECT_EQ(store().Audit("", "", 10)->items.size(), 2u);
}

TEST_P(StateStoreContract, IssuedCertificatesAreFoundByPrefix) {
  for (int i = 0; i < 5; ++i) {
    Apply(RecordIssued{{absl::StrCat("spiffe://f/user/u", i % 2), "issuer", absl::StrCat("s", i),
                        "ann", 100 + i, 200 + i}});
  }
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "s9", "ann", 300, 400}});
  auto users = store().Issued("spiffe://f/user/", 10);
  ASSERT_EQ(users->size(), 5u);
  EXPECT_EQ((*users)[0].serial, "s4");
  EXPECT_EQ((*users)[0].issued_to, "ann");
  EXPECT_EQ((*users)[0].expires_at, 204);
  EXPECT_EQ(store().Issued("spiffe://f/user/u1", 1)->size(), 1u);
  EXPECT_EQ(store().Issued("", 100)->size(), 6u);
  // Long after their end they are forgotten, a few with each new one.
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1'000'000;
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "t1", "ann", kYear, 2 * kYear}});
  Apply(RecordIssued{{"spiffe://f/node/n", "issuer", "t2", "ann", kYear, 2 * kYear}});
  EXPECT_EQ(store().Issued("", 100)->size(), 2u);
}

TEST_P(StateStoreContract, AuditRecordsComeInOrder) {
  Plan(1);
  for (int i = 0; i < 5; ++i) {
    AuditRecord record;
    record.at = i;
    record.kind = AuditKind::kRefused;
    record.actor = "someone";
    record.key = KeyOf("n1");
    record.text = absl::StrCat("text ", i);
    Apply(AppendAudit{record});
  }
  std::string texts;
  std::string token;
  do {
    auto page = store().Audit(kRun, token, 2);
    for (const AuditRecord& record : page->items) texts += record.text + ",";
    token = page->next;
  } while (!token.empty());
  EXPECT_EQ(texts, "created,text 0,text 1,text 2,text 3,text 4,");
  auto page = store().Audit(kRun, "", 2);
  EXPECT_EQ(page->items[1].actor, "someone");
  EXPECT_EQ(page->items[1].key, KeyOf("n1"));
  EXPECT_EQ(ReasonOf(store().Audit(kRun, "zz", 2).status()), "INVALID_PAGE_TOKEN");
}

// ---- Many at once ----

TEST_P(StateStoreContract, AnswersComeInTheOrderOfTheCalls) {
  Plan(200);
  std::vector<int> order;
  std::promise<void> last;
  for (int i = 1; i <= 200; ++i) {
    store().Apply(Genuine(KeyOf(absl::StrCat("n", i)), "x"),
                  [&, i](absl::StatusOr<CommitResult::Result> result) {
                    ASSERT_TRUE(result.ok()) << result.status();
                    EXPECT_EQ(result->last, i == 200);
                    order.push_back(i);
                    if (i == 200) last.set_value();
                  });
  }
  last.get_future().wait();
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[i], i + 1);
  ExpectCounters(0, 200, 0, 0);
}

TEST_P(StateStoreContract, OneFailureDoesNotHarmItsNeighbours) {
  Plan(100);
  std::atomic<int> good = 0;
  std::promise<void> last;
  for (int i = 1; i <= 100; ++i) {
    // Every tenth one cannot be done at all.
    const std::string body(i % 10 == 0 ? kInlineLimit + 1 : 3, 'x');
    store().Apply(Genuine(KeyOf(absl::StrCat("n", i)), body),
                  [&, i](absl::StatusOr<CommitResult::Result> result) {
                    EXPECT_EQ(result.ok(), i % 10 != 0) << i;
                    good += result.ok() ? 1 : 0;
                    if (i == 100) last.set_value();
                  });
  }
  last.get_future().wait();
  EXPECT_EQ(good, 90);
  ExpectCounters(10, 90, 0, 0);
}

TEST_P(StateStoreContract, ManyThreadsOneTruth) {
  constexpr int kThreads = 8;
  constexpr int kNodes = 40;
  Plan(kNodes);
  std::atomic<int> committed = 0, same = 0, conflict = 0, last = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= kNodes; ++i) {
        // Half of the threads agree with one another, the others do not.
        const auto result = Apply(
            Genuine(KeyOf(absl::StrCat("n", i)), t % 2 == 0 ? "agreed" : absl::StrCat("x", t)));
        committed += result.verdict == CommitVerdicts::kCommitted;
        same += result.verdict == CommitVerdicts::kSame;
        conflict += result.verdict == CommitVerdicts::kConflict;
        last += result.last;
        const auto view = store().GetRun(kRun);
        ASSERT_TRUE(view.ok());
        const RunRecord& run = (*view)->run;
        ASSERT_EQ(run.planned, run.pending + run.genuine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(committed, kNodes);
  EXPECT_EQ(committed + same + conflict, kThreads * kNodes);
  EXPECT_EQ(last, 1);
  ExpectCounters(0, kNodes, 0, 0);
}

TEST_P(StateStoreContract, ALargePlan) {
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 20'000; ++i) pairs.push_back({"facts", absl::StrCat("node-", i)});
  Apply(MakeRun(kRun, std::move(pairs)));
  EXPECT_EQ(Run().run.pending, 20'000);
  EXPECT_EQ(Apply(TimeOutRun{.run = kRun, .error = "x", .at = 5}).timed_out, 20'000);
  ExpectCounters(0, 0, 0, 20'000);
  EXPECT_EQ(Result(KeyOf("node-19999")).outcome, Outcome::kTimedOut);
  Apply(EndRun{.run = kRun, .state = RunState::kFailed});
  EXPECT_TRUE(Apply(DeleteRun{.run = kRun}).deleted);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_STATE_STORE_CONTRACT_H_
