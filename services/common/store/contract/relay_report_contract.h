// The contract of every StateStore for reports of relays, included by state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_RELAY_REPORT_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_RELAY_REPORT_CONTRACT_H_

#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

// The node may still have the result.
TEST_P(StateStoreContract, ReportOfARelayIsAuditedAndStoresNoResult) {
  Plan(1);
  CommitResult report = Failed(KeyOf("n1"), "relay r1 had no way to deliver it");
  report.result.delivery.vouched_by = "spiffe://f.muster/service/relay/r1";
  report.relay_report = true;
  const auto reported = Apply(report);
  EXPECT_EQ(reported.verdict, CommitVerdicts::kErrorKept);
  EXPECT_EQ(reported.head.outcome, Outcome::kPending);
  EXPECT_FALSE(reported.last);
  ExpectCounters(1, 0, 0, 0);
  EXPECT_EQ(Run().run.state, RunState::kPlanned);
  EXPECT_EQ(AuditKinds().back(), AuditKind::kExpired);
  const size_t audited = AuditKinds().size();
  EXPECT_EQ(Commit(report), CommitVerdicts::kErrorKept);  // the response was lost
  EXPECT_EQ(AuditKinds().size(), audited);
  const AuditRecord record = store().Audit({.run = kRun}, "", 1000)->items.back();
  EXPECT_EQ(record.actor, "spiffe://f.muster/service/relay/r1");
  EXPECT_EQ(record.key, KeyOf("n1"));
  EXPECT_EQ(record.text, "relay r1 had no way to deliver it");
  EXPECT_EQ(record.count, 2);
  const auto genuine = Apply(Genuine(KeyOf("n1"), "content"));
  EXPECT_EQ(genuine.verdict, CommitVerdicts::kCommitted);
  EXPECT_EQ(genuine.head.generation, 1);
  const auto late = Apply(report);
  EXPECT_EQ(late.verdict, CommitVerdicts::kErrorKept);
  EXPECT_EQ(late.head.outcome, Outcome::kGenuine);
}

TEST_P(StateStoreContract, ReportsOfARelayAreAuditedUpToALimit) {
  Plan(1);
  CommitResult report = Failed(KeyOf("n1"), "");
  report.result.delivery.vouched_by = "spiffe://f.muster/service/relay/r1";
  report.relay_report = true;
  for (int64_t i = 0; i < kMaxRefusals + 5; ++i) {
    report.result.error = absl::StrCat("reason ", i);
    store().Apply(report, [](const absl::StatusOr<CommitResult::Result>&) {});
  }
  Commit(report);
  const auto audited = store().Audit({.run = kRun, .kinds = {AuditKind::kExpired}}, "", 5'000);
  EXPECT_EQ(static_cast<int64_t>(audited->items.size()), kMaxRefusals);
}

// A relay that lies cannot use up the refusals of a node.
TEST_P(StateStoreContract, RefusedReportHasTheRelayAsActor) {
  Plan(1);
  const std::string relay = "spiffe://f.muster/service/relay/r1";
  const auto report = [&](const ResultKey& key, int64_t at) {
    CommitResult command = Failed(key, "expired", at);
    command.result.delivery.vouched_by = relay;
    command.relay_report = true;
    return Commit(command);
  };
  EXPECT_EQ(report(KeyOf("n9"), kDeadline), CommitVerdicts::kNotPlanned);
  EXPECT_EQ(report(KeyOf("n1"), kDeadline + kGrace + 1), CommitVerdicts::kSealed);
  const auto audited = store().Audit(
      {.run = kRun, .actor = relay, .kinds = {AuditKind::kUnplanned, AuditKind::kLate}}, "", 100);
  ASSERT_EQ(audited->items.size(), 2u);
  EXPECT_EQ(audited->items[0].key, KeyOf("n9"));
  EXPECT_EQ(audited->items[1].key, KeyOf("n1"));
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_RELAY_REPORT_CONTRACT_H_
