// The fixture of the contract tests for StateStore drivers.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_STATE_STORE_FIXTURE_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_STATE_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/store/contract/store_harness.h"

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

  // A second run in the same store.
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

  // Checks the counters, and that planned = pending + genuine + errors + timed_out.
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
    auto audit = store().Audit({.run = kRun}, "", 1000);
    EXPECT_TRUE(audit.ok()) << audit.status();
    for (const AuditRecord& record : audit->items) kinds.push_back(record.kind);
    return kinds;
  }

  std::unique_ptr<StoreHarness> harness_ = GetParam()();
};

using OpenVerdicts = OpenUpload::Verdict;
using CommitVerdicts = CommitResult::Verdict;

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_STATE_STORE_FIXTURE_H_
