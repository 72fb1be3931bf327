// The contract of every StateStore for damaged results, included by state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_DAMAGE_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_DAMAGE_CONTRACT_H_

#include <string>
#include <vector>

#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

inline RecordDamage DamageOf(const ResultKey& key, std::string_view damage, int64_t generation = 1,
                             std::string_view blob = "") {
  return {.key = key,
          .generation = generation,
          .blob = std::string(blob),
          .damage = std::string(damage),
          .actor = "spiffe://f.muster/user/ann",
          .at = 3'000'000};
}

TEST_P(StateStoreContract, DamageIsRecordedOnce) {
  Plan(2);
  Commit(Genuine(KeyOf("n1"), "content"));
  const int64_t before = Run().last_change;
  const RecordDamage::Result recorded = Apply(DamageOf(KeyOf("n1"), "missing"));
  EXPECT_TRUE(recorded.current && recorded.changed);
  EXPECT_EQ(Result(KeyOf("n1")).damage, "missing");
  EXPECT_EQ(store().ListResults({.run = kRun}, "", 10)->items.at(0).damage, "missing");
  EXPECT_EQ(Run().run.damaged, 1);
  EXPECT_EQ(Run().last_change, before + 1);
  EXPECT_EQ(*store().DamagedResults(), 1);
  EXPECT_EQ(AuditKinds().back(), AuditKind::kDamage);

  EXPECT_FALSE(Apply(DamageOf(KeyOf("n1"), "missing")).changed);
  EXPECT_EQ(Run().last_change, before + 1);
  Reopen();
  EXPECT_EQ(Result(KeyOf("n1")).damage, "missing");

  EXPECT_TRUE(Apply(DamageOf(KeyOf("n1"), "")).changed);
  EXPECT_EQ(Result(KeyOf("n1")).damage, "");
  EXPECT_EQ(Run().run.damaged, 0);
  EXPECT_EQ(*store().DamagedResults(), 0);
}

TEST_P(StateStoreContract, DamageOfAnotherGenerationIsIgnored) {
  Plan(1);
  EXPECT_FALSE(Apply(DamageOf(KeyOf("n1"), "missing")).current);  // pending
  Commit(Failed(KeyOf("n1"), "boom"));
  EXPECT_FALSE(Apply(DamageOf(KeyOf("n1"), "missing", 2)).current);
  EXPECT_TRUE(Apply(DamageOf(KeyOf("n1"), "missing", 1)).current);
  EXPECT_FALSE(Apply(DamageOf({"ffffffffffffffff", "facts", "n1"}, "missing")).current);
  EXPECT_EQ(Run().run.damaged, 1);
  // The result that replaces it is whole.
  Commit(Genuine(KeyOf("n1"), "content"));
  EXPECT_EQ(Result(KeyOf("n1")).damage, "");
  EXPECT_EQ(Run().run.damaged, 0);
  EXPECT_EQ(*store().DamagedResults(), 0);
}

TEST_P(StateStoreContract, DamagedResultIsAskedForAgain) {
  Plan(2);
  CommitResult first = Genuine(KeyOf("n1"), "content");
  first.result.body.clear();
  first.result.blob = "runs/a/results/1";
  Commit(first);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u1")), OpenUpload::Verdict::kCommitted);
  EXPECT_TRUE(Apply(DamageOf(KeyOf("n1"), "missing", 1, first.result.blob)).changed);

  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u1")), OpenUpload::Verdict::kOpen);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "other")), CommitResult::Verdict::kConflict);
  EXPECT_EQ(Result(KeyOf("n1")).damage, "missing");
  CommitResult again = Genuine(KeyOf("n1"), "content");
  again.result.body.clear();
  again.result.blob = "runs/a/results/2";
  again.upload_id = "u1";
  again.epoch = 1;
  const CommitResult::Result repaired = Apply(again);
  EXPECT_EQ(repaired.verdict, CommitResult::Verdict::kCommitted);
  EXPECT_FALSE(repaired.blob_unused);
  const ResultRecord result = Result(KeyOf("n1"));
  EXPECT_EQ(result.damage, "");
  EXPECT_EQ(result.blob, "runs/a/results/2");
  EXPECT_EQ(result.generation, 1);
  EXPECT_EQ(Run().run.damaged, 0);
  ExpectCounters(1, 1, 0, 0);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u2")), OpenUpload::Verdict::kCommitted);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "content")), CommitResult::Verdict::kSame);

  // A verification that read the earlier blob.
  EXPECT_FALSE(Apply(DamageOf(KeyOf("n1"), "missing", 1, first.result.blob)).current);
  EXPECT_EQ(Result(KeyOf("n1")).damage, "");

  // A small one.
  EXPECT_TRUE(Apply(DamageOf(KeyOf("n1"), "missing", 1, again.result.blob)).changed);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "content")), CommitResult::Verdict::kCommitted);
  EXPECT_EQ(Result(KeyOf("n1")).body, "content");
  EXPECT_EQ(Result(KeyOf("n1")).blob, "");
}

TEST_P(StateStoreContract, DamagedResultOfAFullRunIsAskedForAgain) {
  Plan(2);
  Commit(Genuine(KeyOf("n1"), "content"));
  Apply(DamageOf(KeyOf("n1"), "missing"));
  const auto open = [](std::string_view node) {
    OpenUpload command = Opening(KeyOf(node), node);
    command.upload.size = 7;
    command.max_run_bytes = 7;
    return command;
  };
  EXPECT_EQ(OpenVerdict(open("n1")), OpenUpload::Verdict::kOpen);
  EXPECT_EQ(OpenVerdict(open("n2")), OpenUpload::Verdict::kRunFull);
}

TEST_P(StateStoreContract, DamagedResultOfASealedRunStaysDamaged) {
  Plan(1);
  Commit(Genuine(KeyOf("n1"), "content"));
  EXPECT_TRUE(Apply(SealRun{kRun, {}, Run().last_change, 3'000'000}).changed);
  Apply(DamageOf(KeyOf("n1"), "missing"));
  Apply(DamageOf({.run = kRun}, "missing", 0));
  EXPECT_EQ(Run().run.damaged, 2);
  EXPECT_EQ(Run().run.archive.damage, "missing");
  EXPECT_NE(OpenVerdict(Opening(KeyOf("n1"), "u1")), OpenUpload::Verdict::kOpen);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "content")), CommitResult::Verdict::kSame);
  EXPECT_EQ(Result(KeyOf("n1")).damage, "missing");
  EXPECT_TRUE(Apply(DeleteRun{.run = kRun}).deleted);
  EXPECT_EQ(*store().DamagedResults(), 0);
}

TEST_P(StateStoreContract, ScrubPositionIsDurable) {
  EXPECT_EQ(*store().ScrubPosition(), "");
  Apply(SaveScrubPosition{"a\nb"});
  Apply(SaveScrubPosition{"c\nd"});
  Reopen();
  EXPECT_EQ(*store().ScrubPosition(), "c\nd");
}

TEST_P(StateStoreContract, SoundStatePassesTheCheck) {
  Plan(2);
  std::atomic<bool> stop = false;
  EXPECT_TRUE(store().CheckState(stop).ok());
  stop = true;
  EXPECT_TRUE(absl::IsCancelled(store().CheckState(stop)));
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_DAMAGE_CONTRACT_H_
