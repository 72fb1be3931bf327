// The contract of every StateStore for lost pairs, runs without agents, and status listeners,
// included by state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_SILENCE_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_SILENCE_CONTRACT_H_

#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

inline TimeOutPair Lost(const ResultKey& key, int64_t at = 3'000'000) {
  return {.key = key, .error = "lost: CRASHED", .actor = "spiffe://f.muster/a", .at = at};
}

TEST_P(StateStoreContract, LostPairIsTimedOutOnce) {
  Plan(3);
  EXPECT_TRUE(Apply(Lost(KeyOf("n1"))).changed);
  ExpectCounters(2, 0, 0, 1);
  EXPECT_EQ(Run().run.state, RunState::kPlanned);  // no result was delivered
  EXPECT_EQ(Run().run.settled_at, 0);
  const ResultRecord lost = Result(KeyOf("n1"));
  EXPECT_EQ(lost.outcome, Outcome::kTimedOut);
  EXPECT_EQ(lost.error, "lost: CRASHED");
  EXPECT_EQ(lost.generation, 1);
  EXPECT_EQ(lost.committed_at, 3'000'000);
  const int64_t before = Run().last_change;
  EXPECT_FALSE(Apply(Lost(KeyOf("n1"))).changed);  // repeated
  EXPECT_FALSE(Apply(Lost(KeyOf("n9"))).changed);  // not planned
  EXPECT_FALSE(Apply(Lost({"ffffffffffffffff", "facts", "n1"})).changed);
  Commit(Genuine(KeyOf("n2"), "x"));
  Commit(Failed(KeyOf("n3"), "boom"));
  EXPECT_FALSE(Apply(Lost(KeyOf("n2"))).changed);  // it has an outcome
  EXPECT_FALSE(Apply(Lost(KeyOf("n3"))).changed);
  ExpectCounters(0, 1, 1, 1);
  EXPECT_EQ(Result(KeyOf("n1")).generation, 1);
  // Three results, one change to running, one to post-processing: none for calls without effect.
  EXPECT_EQ(Run().last_change, before + 4);
}

TEST_P(StateStoreContract, LastLostPairStartsPostProcessing) {
  Plan(2);
  Commit(Genuine(KeyOf("n1"), "x", 2'000'000));
  EXPECT_EQ(Run().run.settled_at, 0);
  const auto lost = Apply(Lost(KeyOf("n2"), 5'000'000));
  EXPECT_TRUE(lost.changed);
  EXPECT_FALSE(lost.failed);
  EXPECT_EQ(Run().run.state, RunState::kPostProcessing);
  EXPECT_EQ(Run().run.settled_at, 5'000'000);
  // A genuine result replaces the time-out until the seal.
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n2"), "u2")), OpenVerdicts::kOpen);
  EXPECT_EQ(Commit(Genuine(KeyOf("n2"), "y", 6'000'000)), CommitVerdicts::kCommitted);
  EXPECT_EQ(Result(KeyOf("n2")).generation, 2);
  ExpectCounters(0, 2, 0, 0);
  EXPECT_EQ(Run().run.state, RunState::kPostProcessing);
}

TEST_P(StateStoreContract, PairOfAnEndedRunIsNotTimedOut) {
  Plan(2);
  Apply(EndRun{.run = kRun, .state = RunState::kCancelled, .at = 9});
  EXPECT_FALSE(Apply(Lost(KeyOf("n1"))).changed);
  ExpectCounters(2, 0, 0, 0);
}

TEST_P(StateStoreContract, FailFastRunFailsWithTheFirstLostPair) {
  CreateRun command = MakeRun(kRun, {{"facts", "n1"}, {"facts", "n2"}});
  command.run.fail_fast = true;
  Apply(std::move(command));
  const auto lost = Apply(Lost(KeyOf("n1"), 5'000'000));
  EXPECT_TRUE(lost.changed);
  EXPECT_TRUE(lost.failed);
  const RunRecord run = Run().run;
  EXPECT_EQ(run.state, RunState::kFailed);
  EXPECT_EQ(run.reason, "facts on n1: lost: CRASHED");
  EXPECT_EQ(run.ended_at, 5'000'000);
  ExpectCounters(1, 0, 0, 1);
  EXPECT_FALSE(Apply(Lost(KeyOf("n2"))).changed);
  EXPECT_EQ(Run().run.reason, run.reason);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "x")), CommitVerdicts::kCancelled);
  EXPECT_EQ(AuditKinds(), (std::vector{AuditKind::kRun, AuditKind::kRun}));
  EXPECT_EQ(store().Audit({.run = kRun}, "", 10)->items.back().actor, "spiffe://f.muster/a");
}

TEST_P(StateStoreContract, FailFastRunFailsAtItsDeadline) {
  CreateRun command = MakeRun(kRun, {{"facts", "n1"}, {"facts", "n2"}});
  command.run.fail_fast = true;
  Apply(std::move(command));
  EXPECT_EQ(Apply(TimeOutRun{.run = kRun, .error = "late", .at = 7}).timed_out, 2);
  EXPECT_EQ(Run().run.state, RunState::kFailed);
  EXPECT_EQ(Run().run.reason, "2 pairs: late");
}

TEST_P(StateStoreContract, OnlyPlannedRunEndsWithOnlyPlanned) {
  Plan(2);
  Apply(MakeRun("bbbbbbbbbbbbbbbb", {{"facts", "n1"}}));
  const auto start_grace_expired = [](std::string_view run) {
    return EndRun{.run = std::string(run),
                  .state = RunState::kFailed,
                  .reason = "nobody came",
                  .at = 9,
                  .only_planned = true};
  };
  Commit(Genuine(KeyOf("n1"), "x"));
  const auto kept = Apply(start_grace_expired(kRun));
  EXPECT_TRUE(kept.found);
  EXPECT_FALSE(kept.changed);
  EXPECT_EQ(kept.state, RunState::kRunning);
  EXPECT_EQ(Run().run.reason, "");
  EXPECT_TRUE(Apply(start_grace_expired("bbbbbbbbbbbbbbbb")).changed);
  EXPECT_EQ(Run("bbbbbbbbbbbbbbbb").run.state, RunState::kFailed);
  EXPECT_EQ(Run("bbbbbbbbbbbbbbbb").run.reason, "nobody came");
  EXPECT_FALSE(Apply(start_grace_expired("bbbbbbbbbbbbbbbb")).changed);
}

TEST_P(StateStoreContract, StatusListenerIsSetOnceAndDeletedWithTheCa) {
  using Verdict = SetStatusListener::Verdict;
  Plan(1);
  const SetStatusListener set = {.run = kRun,
                                 .listener = {.client_ca_pem = "ca",
                                              .certificate_pem = "leaf",
                                              .wrapped_key = std::string("\0key", 4)},
                                 .actor = "spiffe://f.muster/user/ann",
                                 .at = 5};
  EXPECT_FALSE(Run().run.status_listener.has_value());
  EXPECT_FALSE(Apply(ReportStatusListener{.run = kRun, .listener = {.port = 1}}).found);
  EXPECT_EQ(Apply(SetStatusListener{.run = "ffffffffffffffff"}).verdict, Verdict::kRunNotFound);
  const int64_t before = Run().last_change;
  EXPECT_EQ(Apply(set).verdict, Verdict::kSet);
  EXPECT_EQ(Run().last_change, before + 1);
  SetStatusListener other = set;
  other.listener.certificate_pem = "another";
  EXPECT_EQ(Apply(std::move(other)).verdict, Verdict::kExists);
  EXPECT_EQ(AuditKinds(), (std::vector{AuditKind::kRun, AuditKind::kRun}));
  EXPECT_EQ(store().Audit({.run = kRun}, "", 10)->items.back().actor, "spiffe://f.muster/user/ann");
  Reopen();
  const auto kept = store().GetStatusListener(kRun);
  ASSERT_TRUE(kept.ok() && kept->has_value());
  EXPECT_EQ((*kept)->client_ca_pem, "ca");
  EXPECT_EQ((*kept)->certificate_pem, "leaf");
  EXPECT_EQ((*kept)->wrapped_key, std::string("\0key", 4));
  ASSERT_TRUE(Run().run.status_listener.has_value());
  EXPECT_FALSE(Run().run.status_listener->open);

  Apply(EndRun{.run = kRun, .state = RunState::kFailed, .at = 9});
  EXPECT_TRUE(
      store().GetStatusListener(kRun)->has_value());  // still readable after the end of the run
  EXPECT_EQ(Apply(set).verdict, Verdict::kRunEnded);
  EXPECT_TRUE(
      Apply(ReportStatusListener{.run = kRun, .listener = {.port = 1, .open = true}}).found);
  Apply(WipeAuthority{.run = kRun, .at = 10});
  EXPECT_FALSE(store().GetStatusListener(kRun)->has_value());
  EXPECT_FALSE(Run().run.status_listener->open);
}

TEST_P(StateStoreContract, StatusListenerIsDeletedWithItsRun) {
  Plan(1);
  Apply(SetStatusListener{.run = kRun, .listener = {.client_ca_pem = "ca"}});
  Apply(EndRun{.run = kRun, .state = RunState::kFailed});
  EXPECT_TRUE(Apply(DeleteRun{.run = kRun}).deleted);
  EXPECT_FALSE(store().GetStatusListener(kRun)->has_value());
}

TEST_P(StateStoreContract, PortOfTheStatusListenerNeverChanges) {
  Plan(1);
  Apply(SetStatusListener{
      .run = kRun, .hosts = {"a.example", "192.0.2.7"}, .listener = {.client_ca_pem = "ca"}});
  auto now =
      Apply(ReportStatusListener{.run = kRun, .listener = {.port = 8010, .open = true}, .at = 5});
  EXPECT_TRUE(now.found);
  EXPECT_EQ(now.listener.port, 8010);
  now = Apply(ReportStatusListener{
      .run = kRun, .listener = {.port = 8011, .open = false, .fault = "in use"}, .at = 6});
  EXPECT_EQ(now.listener.port, 8010);
  Reopen();
  const ListenerRecord kept = *Run().run.status_listener;
  EXPECT_EQ(kept.port, 8010);
  EXPECT_FALSE(kept.open);
  EXPECT_EQ(kept.fault, "in use");
  EXPECT_EQ(kept.hosts, (std::vector<std::string>{"a.example", "192.0.2.7"}));
  EXPECT_EQ(Run().run.listener.port, 0);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_SILENCE_CONTRACT_H_
