// The contract of every StateStore for results, included by state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_RESULT_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_RESULT_CONTRACT_H_

#include "services/common/base/error.h"
#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

TEST_P(StateStoreContract, CommittedResultIsStoredUnchanged) {
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

// They are large, and lists and answers of commits are many.
TEST_P(StateStoreContract, OnlyGetResultReturnsTheCertificatesOfTheSigner) {
  Plan(2);
  CommitResult command = Failed(KeyOf("n1"), "no disk");
  command.result.delivery.signature = "sig";
  command.result.delivery.signer_pem = "pem";
  EXPECT_EQ(Apply(command).head.delivery.signer_pem, "");
  const auto again = Apply(command);
  EXPECT_EQ(again.verdict, CommitVerdicts::kSame);
  EXPECT_EQ(again.head.delivery.signature, "sig");
  EXPECT_EQ(again.head.delivery.signer_pem, "");
  EXPECT_EQ(Result(KeyOf("n1")).delivery.signer_pem, "pem");
  const auto listed = store().ListResults({.run = kRun}, "", 10);
  EXPECT_EQ(listed->items.at(0).delivery.signature, "sig");
  EXPECT_EQ(listed->items.at(0).delivery.signer_pem, "");
  ASSERT_EQ(Commit(Genuine(KeyOf("n1"), "content")), CommitVerdicts::kCommitted);
  EXPECT_EQ(store().History(KeyOf("n1"))->at(0).delivery.signer_pem, "");
}

TEST_P(StateStoreContract, SameContentSucceedsAndOtherContentConflicts) {
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
  // A sender that retries forever does not fill the log.
  const size_t audited = AuditKinds().size();
  for (int i = 0; i < 5; ++i) Commit(Genuine(KeyOf("n1"), "other"));
  EXPECT_EQ(AuditKinds().size(), audited);
}

TEST_P(StateStoreContract, ContentIsComparedBySha256OrSizeAndChecksum) {
  Plan(3);
  CommitResult bare = Genuine(KeyOf("n1"), "content");
  bare.result.sha256.clear();
  ASSERT_EQ(Commit(bare), CommitVerdicts::kCommitted);
  EXPECT_EQ(Commit(bare), CommitVerdicts::kSame);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "content")), CommitVerdicts::kSame);
  CommitResult other_sum = bare;
  ++other_sum.result.crc32c;
  EXPECT_EQ(Commit(other_sum), CommitVerdicts::kConflict);
  CommitResult other_size = bare;
  ++other_size.result.size;
  EXPECT_EQ(Commit(other_size), CommitVerdicts::kConflict);
  // If both digests are known, the checksum is not compared.
  ASSERT_EQ(Commit(Genuine(KeyOf("n2"), "content")), CommitVerdicts::kCommitted);
  CommitResult other_digest = Genuine(KeyOf("n2"), "content");
  other_digest.result.sha256 = Digest('b');
  EXPECT_EQ(Commit(other_digest), CommitVerdicts::kConflict);
  CommitResult same_digest = Genuine(KeyOf("n2"), "content");
  ++same_digest.result.crc32c;
  EXPECT_EQ(Commit(same_digest), CommitVerdicts::kSame);
}

TEST_P(StateStoreContract, GenuineResultReplacesAnError) {
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

TEST_P(StateStoreContract, LastResultStartsPostProcessing) {
  Plan(3);
  EXPECT_FALSE(Apply(Genuine(KeyOf("n1"), "1")).last);
  EXPECT_FALSE(Apply(Failed(KeyOf("n2"), "no")).last);
  EXPECT_EQ(Run().run.state, RunState::kRunning);
  EXPECT_TRUE(Apply(Genuine(KeyOf("n3"), "3")).last);
  EXPECT_EQ(Run().run.state, RunState::kPostProcessing);
  // A genuine result replaces the error; the run keeps its state.
  const int64_t before = Run().last_change;
  EXPECT_FALSE(Apply(Genuine(KeyOf("n2"), "2")).last);
  EXPECT_EQ(Run().run.state, RunState::kPostProcessing);
  EXPECT_GT(Run().last_change, before);
  EXPECT_FALSE(Apply(SealRun{.run = kRun, .begun_at_change = before}).changed);
  ExpectCounters(0, 3, 0, 0);
}

TEST_P(StateStoreContract, NodeIsPlannedIfAPairNamesIt) {
  Plan(2);
  EXPECT_TRUE(*store().IsNodePlanned(kRun, "n2"));
  EXPECT_FALSE(*store().IsNodePlanned(kRun, "n3"));
  EXPECT_FALSE(*store().IsNodePlanned("ffffffffffffffff", "n1"));
}

TEST_P(StateStoreContract, UnplannedPairIsRefusedAndAudited) {
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

// Returns the records about refused deliveries of the run.
inline std::vector<AuditRecord> RefusalsIn(StateStore& store) {
  std::vector<AuditRecord> refusals;
  std::string token;
  do {
    auto page = store.Audit({.run = kRun}, token, 1000);
    EXPECT_TRUE(page.ok());
    for (AuditRecord& record : page->items) {
      if (IsRefusal(record.kind)) refusals.push_back(std::move(record));
    }
    token = page->next;
  } while (!token.empty());
  return refusals;
}

TEST_P(StateStoreContract, RefusalsOfASenderAreAuditedUpToALimit) {
  Plan(1);
  const auto refuse = [&](int tries, const std::string& sender, int64_t at) {
    std::promise<void> last;
    for (int i = 0; i < tries; ++i) {
      CommitResult commit = Genuine(KeyOf(absl::StrCat("x", i)), "x");
      commit.result.delivery.uri = sender;
      commit.result.committed_at = at;
      store().Apply(commit, [&last, i, tries](absl::StatusOr<CommitResult::Result>) {
        if (i == tries - 1) last.set_value();
      });
    }
    last.get_future().wait();
  };
  refuse(1'050, "spiffe://f.muster/node/bad", kCreated);
  std::vector<AuditRecord> refusals = RefusalsIn(store());
  ASSERT_EQ(refusals.size(), 1'000u);
  EXPECT_EQ(refusals.front().count, 1);
  EXPECT_EQ(refusals.back().count, 51);
  // The refusals of others, and of the next day, are recorded.
  refuse(1, "spiffe://f.muster/node/good", kCreated);
  EXPECT_EQ(RefusalsIn(store()).size(), 1'001u);
  Reopen();
  refuse(1, "spiffe://f.muster/node/bad", kCreated + 1);
  EXPECT_EQ(RefusalsIn(store()).size(), 1'001u);
  refuse(1'000, "spiffe://f.muster/node/bad", kCreated + kAuditFold);
  EXPECT_EQ(RefusalsIn(store()).size(), 2'001u);
}

TEST_P(StateStoreContract, EqualRefusalsAreCountedInOneRecord) {
  Plan(1);
  CommitResult unplanned = Genuine(KeyOf("n9"), "x");
  Commit(unplanned);
  unplanned.result.committed_at += 5;
  Commit(unplanned);
  Commit(unplanned);
  std::vector<AuditRecord> refusals = RefusalsIn(store());
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_EQ(refusals[0].count, 3);
  EXPECT_EQ(refusals[0].last_at, refusals[0].at + 5);
  unplanned.result.delivery.uri += "x";
  Commit(unplanned);
  EXPECT_EQ(RefusalsIn(store()).size(), 2u);
}

TEST_P(StateStoreContract, TimeOutRunEndsPendingPairs) {
  Plan(4);
  Commit(Genuine(KeyOf("n1"), "1"));
  Commit(Failed(KeyOf("n2"), "no"));
  Apply(Opening(KeyOf("n3"), "u3"));
  const auto result = Apply(TimeOutRun{.run = kRun, .error = "nothing in time", .at = kDeadline});
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.timed_out, 2);
  ExpectCounters(0, 1, 1, 2);
  EXPECT_EQ(Run().run.state, RunState::kPostProcessing);
  const ResultRecord late = Result(KeyOf("n3"));
  EXPECT_EQ(late.outcome, Outcome::kTimedOut);
  EXPECT_EQ(late.generation, 1);
  EXPECT_EQ(late.error, "nothing in time");
  EXPECT_EQ(late.committed_at, kDeadline);
  EXPECT_EQ(Result(KeyOf("n1")).outcome, Outcome::kGenuine);
  EXPECT_TRUE(store().GetUpload("u3")->has_value());  // its result may still arrive
  EXPECT_FALSE(Apply(TimeOutRun{.run = kRun, .error = "again", .at = kDeadline}).changed);
  EXPECT_FALSE(Apply(TimeOutRun{.run = "ffffffffffffffff"}).changed);
}

TEST_P(StateStoreContract, PartialDataIsStoredAtTheEndOfTheGrace) {
  Plan(4);
  Commit(Genuine(KeyOf("n1"), "1"));
  Commit(Failed(KeyOf("n2"), "no"));
  Apply(Opening(KeyOf("n3"), "u3"));
  Apply(TimeOutRun{.run = kRun, .error = "nothing in time", .at = kDeadline});
  const int64_t before = Run().last_change;
  const KeepPartials keep = {.run = kRun,
                             .partial = {{"facts", "n1", "runs/x/1", 1},
                                         {"facts", "n2", "runs/x/2", 2},
                                         {"facts", "n3", "runs/x/3", 77},
                                         {"facts", "n9", "runs/x/9", 9}},
                             .at = kDeadline + kGrace};
  const std::vector<std::string> unused = {"runs/x/1", "runs/x/2", "runs/x/9"};
  EXPECT_EQ(Apply(keep).unused, unused);
  EXPECT_EQ(Apply(keep).unused, unused);  // the response was lost
  EXPECT_EQ(Result(KeyOf("n3")).partial_blob, "runs/x/3");
  EXPECT_EQ(Result(KeyOf("n3")).partial_size, 77);
  EXPECT_EQ(Result(KeyOf("n3")).outcome, Outcome::kTimedOut);
  EXPECT_EQ(Result(KeyOf("n4")).partial_blob, "");
  EXPECT_EQ(Result(KeyOf("n1")).partial_blob, "");
  EXPECT_TRUE(store().OpenUploads(kRun)->empty());
  // An archive that was begun before does not contain it.
  EXPECT_FALSE(Apply(SealRun{.run = kRun, .begun_at_change = before}).changed);
  EXPECT_TRUE(Apply(SealRun{.run = kRun, .begun_at_change = Run().last_change}).changed);
  EXPECT_EQ(Apply(KeepPartials{.run = kRun, .partial = {{"facts", "n4", "late", 1}}}).unused,
            std::vector<std::string>{"late"});
}

TEST_P(StateStoreContract, LateResultsAreAcceptedWithinTheGrace) {
  Plan(4);
  Apply(TimeOutRun{.run = kRun, .error = "late", .at = kDeadline});
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u1", 1, kDeadline + kGrace)), OpenVerdicts::kOpen);
  const auto straggler = Apply(Genuine(KeyOf("n1"), "in grace", kDeadline + kGrace));
  EXPECT_EQ(straggler.verdict, CommitVerdicts::kCommitted);
  EXPECT_EQ(straggler.head.generation, 2);
  EXPECT_FALSE(straggler.last);
  // The node's own error replaces the time-out.
  EXPECT_EQ(Commit(Failed(KeyOf("n2"), "killed", kDeadline + 1)), CommitVerdicts::kCommitted);
  ExpectCounters(0, 1, 1, 2);
  EXPECT_EQ(store().History(KeyOf("n2"))->size(), 1u);

  EXPECT_EQ(Commit(Genuine(KeyOf("n3"), "too late", kDeadline + kGrace + 1)),
            CommitVerdicts::kSealed);
  EXPECT_EQ(AuditKinds().back(), AuditKind::kLate);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n3"), "u3", 1, kDeadline + kGrace + 1)),
            OpenVerdicts::kSealed);
  ExpectCounters(0, 1, 1, 2);
  // Repeated content is not a late delivery.
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "in grace", kDeadline + kGrace + 5)),
            CommitVerdicts::kSame);
}

TEST_P(StateStoreContract, SealedRunRefusesResults) {
  Plan(2);
  Commit(Genuine(KeyOf("n1"), "1"));
  EXPECT_FALSE(Apply(SealRun{.run = kRun, .begun_at_change = 1000}).changed);  // still running
  Commit(Failed(KeyOf("n2"), "no"));
  const SealRun seal = {.run = kRun,
                        .archive = {.blob = "runs/x/archive",
                                    .file_name = "a.tar.gz",
                                    .size = 12,
                                    .sha256 = Digest('s'),
                                    .created_at = 8},
                        .begun_at_change = Run().last_change,
                        .at = 9};
  // Other changes of the run do not make the archive outdated.
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
  CreateRun create = MakeRun(kRun, pairs);
  create.run.plugins = {{.name = "b"}, {.name = "a"}, {.name = "c"}};
  Apply(std::move(create));
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

TEST_P(StateStoreContract, OddTextsAreStoredUnchanged) {
  Plan(1);
  CommitResult command = Genuine(KeyOf("n1"), "x");
  command.result.file_name = std::string("../\xff\0'\"; DROP TABLE runs;--", 24);
  const std::string name = command.result.file_name;
  Commit(std::move(command));
  EXPECT_EQ(Result(KeyOf("n1")).file_name, name);
}

TEST_P(StateStoreContract, TooLargeInlineBodyFails) {
  Plan(2);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), std::string(kInlineLimit, 'x'))),
            CommitVerdicts::kCommitted);
  EXPECT_EQ(Result(KeyOf("n1")).body.size(), static_cast<size_t>(kInlineLimit));
  const auto refused =
      store().ApplyAndWait(Genuine(KeyOf("n2"), std::string(kInlineLimit + 1, 'x')));
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_EQ(Result(KeyOf("n2")).outcome, Outcome::kPending);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_RESULT_CONTRACT_H_
