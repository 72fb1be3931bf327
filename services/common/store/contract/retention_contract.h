// The contract of every StateStore for what retention needs, included by state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_RETENTION_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_RETENTION_CONTRACT_H_

#include "services/common/base/error.h"
#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

class RetentionContract : public StateStoreContract {
 protected:
  // Creates a run with this last digit, which ended at `at`.
  void End(char digit, int64_t at) {
    const std::string id = Id(digit);
    Apply(MakeRun(id, {{"facts", "n1"}}));
    Apply(EndRun{.run = id, .state = RunState::kFailed, .at = at});
  }

  static std::string Id(char digit) { return std::string(15, '0') + digit; }

  std::string Finished(int limit) {
    std::string digits;
    std::string token;
    do {
      const auto page = store().FinishedRuns(token, limit);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const FinishedRun& run : page->items) digits += run.id.back();
      token = page->next;
    } while (!token.empty());
    return digits;
  }
};

TEST_P(RetentionContract, FinishedRunsAreListedInTheOrderOfTheirEnds) {
  EXPECT_EQ(Finished(10), "");
  End('3', 700);
  End('1', 900);
  End('2', 900);
  End('4', 800);
  Plan(1);  // has not ended
  EXPECT_EQ(Finished(10), "3412");
  EXPECT_EQ(Finished(1), "3412");
  EXPECT_EQ(Finished(3), "3412");
  Apply(DeleteRun{.run = Id('4')});
  EXPECT_EQ(Finished(2), "312");
  EXPECT_EQ(ReasonOf(store().FinishedRuns("nonsense", 2).status()), "INVALID_PAGE_TOKEN");
  const FinishedRun first = store().FinishedRuns("", 1)->items[0];
  EXPECT_EQ(first.ended_at, 700);
  EXPECT_EQ(first.title, "a round");
}

TEST_P(RetentionContract, PinnedRunsAreListedAndCountedApart) {
  End('1', 700);
  End('2', 800);
  EXPECT_FALSE(Apply(PinRun{.run = Id('9')}).found);
  EXPECT_TRUE(Apply(PinRun{.run = Id('1'), .actor = "ann", .at = 5}).changed);
  EXPECT_FALSE(Apply(PinRun{.run = Id('1'), .actor = "ann", .at = 6}).changed);
  EXPECT_TRUE(Run(Id('1')).run.pinned);
  EXPECT_EQ(Finished(10), "2");
  EXPECT_EQ(store().CountFinishedRuns()->runs, 1);
  EXPECT_EQ(store().CountFinishedRuns()->pinned_runs, 1);
  Reopen();
  EXPECT_TRUE(Run(Id('1')).run.pinned);
  EXPECT_TRUE(Apply(PinRun{.run = Id('1'), .pinned = false, .actor = "ann", .at = 7}).changed);
  EXPECT_EQ(Finished(10), "12");
  const auto audit = store().Audit({.run = Id('1')}, "", 10);
  ASSERT_EQ(audit->items.size(), 4u);
  EXPECT_EQ(audit->items[2].text, "pinned");
  EXPECT_EQ(audit->items[2].actor, "ann");
  EXPECT_EQ(audit->items[3].text, "unpinned");
}

TEST_P(RetentionContract, RulesDeleteNoPinnedRunAndAreAudited) {
  End('1', 700);
  Apply(PinRun{.run = Id('1')});
  const auto kept = Apply(DeleteRun{.run = Id('1'), .rule = "age=30d"});
  EXPECT_TRUE(kept.found);
  EXPECT_FALSE(kept.deleted);
  Apply(PinRun{.run = Id('1'), .pinned = false});
  EXPECT_TRUE(Apply(DeleteRun{.run = Id('1'), .actor = "agg", .at = 9, .rule = "age=30d"}).deleted);
  EXPECT_EQ(store().Audit({.run = Id('1')}, "", 10)->items.back().text,
            "deleted by retention: age=30d");
  End('2', 700);
  Apply(PinRun{.run = Id('2')});
  EXPECT_TRUE(Apply(DeleteRun{.run = Id('2')}).deleted);  // by an operator
}

TEST_P(RetentionContract, BytesOfARunIncludeReplacedResultsPartialDataAndArchive) {
  Plan(3);
  CommitResult error = Failed(KeyOf("n1"), "boom");
  error.result.size = 7;
  Commit(error);
  EXPECT_EQ(Run().run.result_bytes, 7);
  Commit(Genuine(KeyOf("n1"), "12345"));
  Commit(Genuine(KeyOf("n1"), "12345"));  // repeated
  Commit(Genuine(KeyOf("n2"), "123"));
  EXPECT_EQ(Run().run.result_bytes, 15);
  Apply(Opening(KeyOf("n3"), "u3"));
  Apply(TimeOutRun{.run = kRun, .error = "late", .at = kDeadline});
  const KeepPartials keep = {.run = kRun, .partial = {{"facts", "n3", "runs/x/3", 100}}};
  Apply(keep);
  Apply(keep);  // the response was lost
  EXPECT_EQ(Run().run.result_bytes, 115);
  SealRun seal = {.run = kRun, .begun_at_change = Run().last_change, .at = 900};
  seal.archive.size = 1000;
  seal.archive.sha256 = "\x12\xab";
  seal.actor = "agg";
  EXPECT_TRUE(Apply(seal).changed);
  const AuditRecord complete = store().Audit({.run = kRun}, "", 100)->items.back();
  EXPECT_EQ(complete.text, "complete: 2 of 3 results genuine; SHA-256 of the archive: 12ab");
  EXPECT_EQ(complete.actor, "agg");
  Reopen();
  EXPECT_EQ(StoredBytes(Run().run), 1115);
  EXPECT_EQ(store().FinishedRuns("", 1)->items[0].bytes, 1115);
  EXPECT_EQ(store().CountFinishedRuns()->bytes, 1115);
  Apply(PinRun{.run = kRun});
  EXPECT_EQ(store().CountFinishedRuns()->bytes, 0);
  EXPECT_EQ(store().CountFinishedRuns()->pinned_bytes, 1115);
}

TEST_P(RetentionContract, RunHasALimitOfGenuineBytes) {
  Plan(3);
  const auto limited = [](CommitResult command) {
    command.max_run_bytes = 10;
    return command;
  };
  EXPECT_EQ(Commit(limited(Genuine(KeyOf("n1"), "123456"))), CommitVerdicts::kCommitted);
  CommitResult large = limited(Genuine(KeyOf("n2"), "12345"));
  large.result.body.clear();
  large.result.blob = "runs/x/2";
  const auto refused = Apply(large);
  EXPECT_EQ(refused.verdict, CommitVerdicts::kRunFull);
  EXPECT_EQ(refused.run_bytes, 6);
  EXPECT_TRUE(refused.blob_unused);
  EXPECT_EQ(Run().run.result_bytes, 6);
  EXPECT_EQ(Run().run.pending, 2);
  EXPECT_EQ(Commit(limited(Genuine(KeyOf("n1"), "123456"))), CommitVerdicts::kSame);
  EXPECT_EQ(Commit(limited(Genuine(KeyOf("n3"), "1234"))), CommitVerdicts::kCommitted);
  CommitResult large_error = limited(Failed(KeyOf("n2"), "too large"));
  large_error.result.size = kInlineLimit + 1;
  large_error.result.blob = "runs/x/3";
  EXPECT_EQ(Apply(large_error).verdict, CommitVerdicts::kRunFull);
  CommitResult error = limited(Failed(KeyOf("n2"), "too large"));
  error.result.size = 1;
  EXPECT_EQ(Commit(error), CommitVerdicts::kCommitted);  // the pair has to get an outcome

  OpenUpload open = Opening(KeyOf("n2"), "u2");
  open.max_run_bytes = 20;
  open.upload.size = 10;
  const auto opened = Apply(open);
  EXPECT_EQ(opened.verdict, OpenVerdicts::kRunFull);
  EXPECT_EQ(opened.run_bytes, 11);
  open.upload.size = 9;
  EXPECT_EQ(OpenVerdict(open), OpenVerdicts::kOpen);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_RETENTION_CONTRACT_H_
