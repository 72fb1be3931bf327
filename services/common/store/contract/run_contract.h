// The contract of every StateStore for runs, included by state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_RUN_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_RUN_CONTRACT_H_

#include "services/common/base/error.h"
#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

TEST_P(StateStoreContract, CreatedRunIsStoredUnchanged) {
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
  EXPECT_EQ(run.start_grace, 3'000'000);
  EXPECT_EQ(run.lost_after, 4'000'000);
  EXPECT_FALSE(run.fail_fast);
  EXPECT_EQ(run.planned, 3);
  EXPECT_EQ(run.pending, 3);
  EXPECT_EQ(run.listener.hosts, given.listener.hosts);
  ASSERT_EQ(run.plugins.size(), 2u);
  EXPECT_EQ(run.plugins[0].definition_yaml, "a: 1\n");
  EXPECT_TRUE(run.plugins[1].once);
  EXPECT_FALSE(run.plugins[1].has_image);
  EXPECT_TRUE(run.plugins[0].has_image);
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

TEST_P(StateStoreContract, RepeatedCreationReturnsTheFirstRun) {
  Plan(1);
  CreateRun again = MakeRun("ffffffffffffffff", {{"facts", "other"}});
  again.run.request_id = absl::StrCat("request-", kRun);
  const auto result = Apply(std::move(again));
  EXPECT_TRUE(result.existed);
  EXPECT_EQ(result.run, kRun);
  EXPECT_FALSE(store().GetRun("ffffffffffffffff")->has_value());
  EXPECT_FALSE(*store().IsPlanned({"ffffffffffffffff", "facts", "other"}));
  // Without a request id every creation is a new run.
  for (const char* id : {"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"}) {
    CreateRun fresh = MakeRun(id, {{"facts", "n1"}});
    fresh.run.request_id.clear();
    EXPECT_FALSE(Apply(std::move(fresh)).existed);
  }
  // The same id with another request is an error of the caller.
  CreateRun clash = MakeRun(kRun, {{"facts", "n1"}});
  clash.run.request_id = "another";
  EXPECT_TRUE(absl::IsAlreadyExists(store().ApplyAndWait(std::move(clash)).status()));
}

TEST_P(StateStoreContract, RepeatedPairIsPlannedOnce) {
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
    if (ids.size() == 2) {  // rows may be removed between two pages
      Apply(EndRun{.run = "0000000000000002", .state = RunState::kFailed});
      Apply(DeleteRun{.run = "0000000000000002"});
    }
  } while (!token.empty());
  EXPECT_EQ(ids, "4310");
  for (const char* token : {"nonsense", "/0000000000000001", "1x/0000000000000001"}) {
    EXPECT_EQ(ReasonOf(store().ListRuns(token, 2).status()), "INVALID_PAGE_TOKEN") << token;
  }
}

TEST_P(StateStoreContract, PortOfTheListenerNeverChanges) {
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

TEST_P(StateStoreContract, LiveRunsIncludesRunsWithACa) {
  Plan(1);
  Apply(MakeRun("bbbbbbbbbbbbbbbb", {{"facts", "n1"}}));
  EXPECT_EQ(store().LiveRuns()->size(), 2u);
  Apply(EndRun{.run = kRun, .state = RunState::kCancelled, .reason = "why", .at = 9});
  EXPECT_EQ(store().LiveRuns()->size(), 2u);  // its CA still exists
  EXPECT_FALSE(Run().run.ca_deleted);
  EXPECT_TRUE(Apply(WipeAuthority{.run = kRun, .at = 10}).changed);
  EXPECT_FALSE(Apply(WipeAuthority{.run = kRun, .at = 10}).changed);
  EXPECT_FALSE(store().GetAuthority(kRun)->has_value());
  EXPECT_TRUE(Run().run.ca_deleted);
  auto live = store().LiveRuns();
  ASSERT_EQ(live->size(), 1u);
  EXPECT_EQ((*live)[0].run.id, "bbbbbbbbbbbbbbbb");
  EXPECT_EQ((*live)[0].run.plugins.size(), 2u);
}

TEST_P(StateStoreContract, RunEndsOnce) {
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
  EXPECT_FALSE(Apply(SealRun{.run = kRun, .begun_at_change = 1000}).changed);
}

TEST_P(StateStoreContract, DeletedRunKeepsOnlyItsAudit) {
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

TEST_P(StateStoreContract, PairsAreListedByPluginAndNode) {
  Apply(MakeRun(kRun, {{"b", "n1"}, {"a", "n2"}, {"a", "n1"}}));
  Commit(Failed(KeyOf("n1", "b"), "why"));
  std::string all;
  std::string token;
  do {
    const auto page = store().ListPairs(kRun, token, 2);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const PairRecord& pair : page->items) {
      absl::StrAppend(&all, pair.plugin, "/", pair.node, "=", static_cast<int>(pair.outcome),
                      pair.error, pair.committed_at != 0 ? "@ " : " ");
    }
    token = page->next;
  } while (!token.empty());
  EXPECT_EQ(all, "a/n1=0 a/n2=0 b/n1=2why@ ");
  EXPECT_TRUE(store().ListPairs("ffffffffffffffff", "", 7)->items.empty());
  EXPECT_EQ(ReasonOf(store().ListPairs(kRun, "x", 1).status()), "INVALID_PAGE_TOKEN");
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_RUN_CONTRACT_H_
