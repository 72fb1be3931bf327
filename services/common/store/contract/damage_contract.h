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
  EXPECT_EQ(Run().last_change, before + 2);  // the request for it precedes the change of the run
  EXPECT_EQ(*store().DamagedResults(), 1);
  EXPECT_EQ(AuditKinds().back(), AuditKind::kDamage);

  EXPECT_FALSE(Apply(DamageOf(KeyOf("n1"), "missing")).changed);
  EXPECT_EQ(Run().last_change, before + 2);
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

// Its archive does not change, but the result can be read again.
TEST_P(StateStoreContract, DamagedResultOfASealedRunIsRestoredByTheSameContentOnly) {
  Plan(1);
  Commit(Genuine(KeyOf("n1"), "content"));
  EXPECT_TRUE(Apply(SealRun{kRun, {}, Run().last_change, 3'000'000}).changed);
  OpenUpload same = Opening(KeyOf("n1"), "u1");
  same.upload.sha256 = Result(KeyOf("n1")).sha256;
  EXPECT_EQ(OpenVerdict(same), OpenUpload::Verdict::kCommitted);
  Apply(DamageOf(KeyOf("n1"), "missing"));
  Apply(DamageOf({.run = kRun}, "missing", 0));
  EXPECT_EQ(Run().run.damaged, 2);
  EXPECT_EQ(Run().run.archive.damage, "missing");
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u2")), OpenUpload::Verdict::kSealed);
  EXPECT_EQ(Commit(Genuine(KeyOf("n1"), "other")), CommitResult::Verdict::kSealed);
  EXPECT_EQ(OpenVerdict(same), OpenUpload::Verdict::kOpen);
  EXPECT_TRUE(Apply(Genuine(KeyOf("n1"), "content")).repaired);
  EXPECT_EQ(Result(KeyOf("n1")).damage, "");
  EXPECT_EQ(Run().run.state, RunState::kComplete);
  EXPECT_EQ(Run().run.archive.damage, "missing");
  EXPECT_TRUE(Apply(DeleteRun{.run = kRun}).deleted);
  EXPECT_EQ(*store().DamagedResults(), 0);
}

// A node cannot use the repair to store other bytes, or to fill the disk.
TEST_P(StateStoreContract, DamagedResultIsAcceptedAgainOnlyWithItsDigestAndSize) {
  Plan(1);
  Commit(Genuine(KeyOf("n1"), "content"));
  Apply(DamageOf(KeyOf("n1"), "missing"));
  OpenUpload other = Opening(KeyOf("n1"), "u1");
  other.upload.sha256 = std::string(32, 'x');
  EXPECT_EQ(OpenVerdict(other), OpenUpload::Verdict::kCommitted);
  other.upload.sha256 = "";
  other.upload.size = 8;
  EXPECT_EQ(OpenVerdict(other), OpenUpload::Verdict::kCommitted);
  other.upload.size = 7;
  EXPECT_EQ(OpenVerdict(other), OpenUpload::Verdict::kOpen);
  CommitResult no_digest = Genuine(KeyOf("n1"), "content");
  no_digest.result.sha256.clear();
  EXPECT_EQ(Commit(no_digest), CommitResult::Verdict::kSame);
  EXPECT_EQ(Result(KeyOf("n1")).damage, "missing");
}

inline std::vector<std::string> RequestedOf(StateStore& store, std::string_view run = "") {
  std::vector<std::string> nodes;
  std::string page_token;
  do {
    const auto page = store.RequestedRedeliveries(run, page_token, 1);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) break;
    for (const ResultKey& key : page->items) nodes.push_back(key.node);
    page_token = page->next;
  } while (!page_token.empty());
  return nodes;
}

TEST_P(StateStoreContract, DamagedGenuineResultsAreRequested) {
  Plan(3);
  Commit(Genuine(KeyOf("n1"), "content"));
  Commit(Failed(KeyOf("n2"), "boom"));
  Commit(Genuine(KeyOf("n3"), "content"));
  for (const char* node : {"n1", "n2", "n3"}) Apply(DamageOf(KeyOf(node), "missing"));
  EXPECT_EQ(Result(KeyOf("n1")).redelivery, kRedeliveryRequested);
  EXPECT_EQ(Result(KeyOf("n2")).redelivery, "");
  EXPECT_EQ(store().ListResults({.run = kRun}, "", 10)->items.at(0).redelivery,
            kRedeliveryRequested);
  Reopen();
  EXPECT_EQ(RequestedOf(store()), (std::vector<std::string>{"n1", "n3"}));
  EXPECT_EQ(RequestedOf(store(), kRun).size(), 2U);
  EXPECT_TRUE(RequestedOf(store(), "ffffffffffffffff").empty());
  // Restored by its node, and found intact.
  EXPECT_TRUE(Apply(Genuine(KeyOf("n1"), "content")).repaired);
  Apply(DamageOf(KeyOf("n3"), ""));
  EXPECT_TRUE(RequestedOf(store()).empty());
}

TEST_P(StateStoreContract, RunThatWasCancelledRequestsNothing) {
  Plan(2);
  Commit(Genuine(KeyOf("n1"), "content"));
  Apply(DamageOf(KeyOf("n1"), "missing"));
  EXPECT_EQ(RequestedOf(store()).size(), 1U);
  EXPECT_TRUE(Apply(EndRun{.run = kRun, .state = RunState::kCancelled}).changed);
  EXPECT_TRUE(RequestedOf(store()).empty());
  EXPECT_EQ(Result(KeyOf("n1")).redelivery, "");
}

TEST_P(StateStoreContract, DeclinedResultIsRequestedAgainByTheNextVerification) {
  Plan(1);
  Commit(Genuine(KeyOf("n1"), "content"));
  const DeclineRedelivery decline{.key = KeyOf("n1"), .reason = "not kept", .at = 4'000'000};
  EXPECT_FALSE(Apply(decline).declined);  // it is not damaged
  EXPECT_EQ(Apply(DamageOf(KeyOf("n1"), "missing")).redelivery, kRedeliveryRequested);
  EXPECT_TRUE(Apply(decline).declined);
  EXPECT_EQ(Result(KeyOf("n1")).redelivery, "declined: not kept");
  EXPECT_EQ(Result(KeyOf("n1")).damage, "missing");
  EXPECT_EQ(AuditKinds().back(), AuditKind::kDamage);
  EXPECT_TRUE(RequestedOf(store()).empty());
  const int64_t before = Run().last_change;
  EXPECT_FALSE(Apply(decline).declined);
  EXPECT_EQ(Run().last_change, before);
  Reopen();
  EXPECT_EQ(Result(KeyOf("n1")).redelivery, "declined: not kept");
  EXPECT_EQ(Apply(DamageOf(KeyOf("n1"), "missing")).redelivery, kRedeliveryRequested);
  EXPECT_EQ(RequestedOf(store()).size(), 1U);
  // No reason looks like a request.
  const DeclineRedelivery forged{.key = KeyOf("n1"), .reason = std::string(kRedeliveryRequested)};
  EXPECT_TRUE(Apply(forged).declined);
  EXPECT_FALSE(Apply(forged).declined);
  EXPECT_FALSE(Apply(DeclineRedelivery{.key = KeyOf("n9"), .reason = "not kept"}).found);
}

TEST_P(StateStoreContract, DeclineIsKeptByAVerificationThatSaysSo) {
  Plan(1);
  Commit(Genuine(KeyOf("n1"), "content"));
  Apply(DamageOf(KeyOf("n1"), "missing"));
  EXPECT_TRUE(Apply(DeclineRedelivery{.key = KeyOf("n1"), .reason = "not kept"}).declined);
  RecordDamage kept = DamageOf(KeyOf("n1"), "missing");
  kept.keep_declined = true;
  EXPECT_EQ(Apply(kept).redelivery, "declined: not kept");
  kept.damage = "differs";  // found in another way
  EXPECT_TRUE(Apply(kept).changed);
  EXPECT_EQ(Result(KeyOf("n1")).damage, "differs");
  EXPECT_EQ(Result(KeyOf("n1")).redelivery, "declined: not kept");
  EXPECT_TRUE(RequestedOf(store()).empty());
  kept.keep_declined = false;
  EXPECT_EQ(Apply(kept).redelivery, kRedeliveryRequested);
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
