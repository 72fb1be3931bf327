// The contract of every StateStore for uploads, included by state_store_contract.h.
#ifndef MUSTER_SERVICES_COMMON_STORE_CONTRACT_UPLOAD_CONTRACT_H_
#define MUSTER_SERVICES_COMMON_STORE_CONTRACT_UPLOAD_CONTRACT_H_

#include "services/common/store/contract/state_store_fixture.h"

namespace muster {

TEST_P(StateStoreContract, LaterOpenTakesTheUploadOver) {
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
  EXPECT_EQ((*kept)->size, 10);  // announced only now
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
}

// Its sender signs this description, not the one of an earlier open by a relay.
TEST_P(StateStoreContract, UploadHasTheDescriptionOfItsLastOpen) {
  Plan(1);
  OpenUpload first = Opening(KeyOf("n1"), "u1");
  first.upload.is_error = true;
  Apply(first);
  OpenUpload last = Opening(KeyOf("n1"), "u2");
  last.upload.media_type = "text/plain";
  last.upload.file_name = "log.txt";
  const UploadRecord opened = Apply(last).upload;
  const auto kept = store().GetUpload("u1");
  ASSERT_TRUE(kept->has_value());
  for (const UploadRecord& upload : {opened, **kept}) {
    EXPECT_EQ(upload.epoch, 2);
    EXPECT_EQ(upload.media_type, "text/plain");
    EXPECT_EQ(upload.file_name, "log.txt");
    EXPECT_FALSE(upload.is_error);
  }
}

inline OpenUpload OpeningThrough(const std::string& relay, const std::string& id) {
  OpenUpload command = Opening(KeyOf("n1"), id);
  command.upload.delivery.vouched_by = "spiffe://f.muster/service/relay/" + relay;
  command.upload.proven = false;
  return command;
}

TEST_P(StateStoreContract, SizeAndDigestOfAnotherSenderAreForgotten) {
  Plan(1);
  OpenUpload forged = OpeningThrough("r1", "u1");
  forged.upload.size = 1;
  forged.upload.sha256 = Digest('x');
  Apply(forged);
  // The spool of another relay delivers, with the signature of the node.
  OpenUpload signed_open = OpeningThrough("r2", "u2");
  signed_open.upload.proven = true;
  signed_open.upload.size = 10;
  signed_open.upload.sha256 = Digest('y');
  const UploadRecord opened = Apply(signed_open).upload;
  EXPECT_EQ(opened.id, "u1");
  EXPECT_EQ(opened.size, 10);
  EXPECT_EQ(opened.sha256, Digest('y'));
  EXPECT_EQ((*store().GetUpload("u1"))->size, 10);
  // The node does not know its size yet.
  const UploadRecord direct = Apply(Opening(KeyOf("n1"), "u3")).upload;
  EXPECT_EQ(direct.id, "u1");
  EXPECT_EQ(direct.size, -1);
  EXPECT_EQ(direct.sha256, "");
  EXPECT_EQ((*store().GetUpload("u1"))->size, -1);
}

TEST_P(StateStoreContract, LaterSizeOfTheSameSenderReplacesItsEarlierOne) {
  Plan(1);
  OpenUpload open = Opening(KeyOf("n1"), "u1");
  open.upload.size = 5;
  open.upload.sha256 = Digest('x');
  Apply(open);
  UploadRecord again = Apply(Opening(KeyOf("n1"), "u2")).upload;
  EXPECT_EQ(again.size, 5);
  EXPECT_EQ(again.sha256, Digest('x'));
  open.upload.size = 6;
  open.upload.sha256 = Digest('y');
  again = Apply(open).upload;
  EXPECT_EQ(again.size, 6);
  EXPECT_EQ(again.sha256, Digest('y'));
}

// Otherwise a relay with an attach statement could spoil each attempt with a byte between two
// streams of the owner.
TEST_P(StateStoreContract, OwnerReclaimsItsUploadAfterAnUnprovenOpen) {
  Plan(1);
  Apply(OpeningThrough("r1", "u1"));
  // The owner continues once: its relay may have failed.
  const auto continued = Apply(Opening(KeyOf("n1"), "u2"));
  EXPECT_EQ(continued.upload.id, "u1");
  EXPECT_FALSE(continued.reclaimed);
  const auto unproven = Apply(OpeningThrough("r1", "u3"));
  EXPECT_EQ(unproven.upload.id, "u1");
  EXPECT_FALSE(unproven.reclaimed);
  Reopen();
  const auto reclaimed = Apply(Opening(KeyOf("n1"), "u4"));
  EXPECT_FALSE(reclaimed.created);
  EXPECT_TRUE(reclaimed.reclaimed);
  EXPECT_EQ(reclaimed.upload.id, "u1");
  // With its proof, another sender of the same owner continues.
  OpenUpload spooled = OpeningThrough("r2", "u5");
  spooled.upload.proven = true;
  EXPECT_FALSE(Apply(spooled).reclaimed);
  EXPECT_FALSE(Apply(Opening(KeyOf("n1"), "u6")).reclaimed);
}

TEST_P(StateStoreContract, CommitWithoutTheUploadIsTakenOverEvenIfTheContentIsTheSame) {
  Plan(2);
  Apply(Opening(KeyOf("n1"), "u1"));
  CommitResult commit = Genuine(KeyOf("n1"), "x");
  commit.upload_id = "u1";
  commit.epoch = 1;
  EXPECT_EQ(Commit(commit), CommitVerdicts::kCommitted);
  EXPECT_EQ(Commit(commit), CommitVerdicts::kTakenOver);
  // Another upload may deliver the error again; a later open owns it.
  Apply(Opening(KeyOf("n2"), "u2"));
  Commit(Failed(KeyOf("n2"), "why"));
  Apply(Opening(KeyOf("n2"), "u3"));
  CommitResult dead = Failed(KeyOf("n2"), "why");
  dead.upload_id = "u2";
  dead.epoch = 1;
  EXPECT_EQ(Commit(dead), CommitVerdicts::kTakenOver);
  EXPECT_TRUE(store().GetUpload("u2")->has_value());
  dead.epoch = 2;
  EXPECT_EQ(Commit(dead), CommitVerdicts::kSame);
  EXPECT_FALSE(store().GetUpload("u2")->has_value());
}

TEST_P(StateStoreContract, BlobOfARefusedCommitIsUnusedUnlessAResultOrALaterOwnerNeedsIt) {
  Plan(4);
  const auto commit = [&](const std::string& node, const std::string& upload, int64_t epoch,
                          CommitResult command) {
    command.result.body.clear();
    command.result.blob = "b/" + upload;
    command.upload_id = upload;
    command.epoch = epoch;
    return Apply(std::move(command));
  };
  Apply(Opening(KeyOf("n1"), "u1"));
  EXPECT_FALSE(commit("n1", "u1", 1, Genuine(KeyOf("n1"), "x")).blob_unused);
  const auto again = commit("n1", "u1", 1, Genuine(KeyOf("n1"), "x"));
  EXPECT_EQ(again.verdict, CommitVerdicts::kTakenOver);
  EXPECT_FALSE(again.blob_unused);  // the result refers to it
  // A later owner of the upload needs it.
  Apply(Opening(KeyOf("n2"), "u2"));
  Apply(Opening(KeyOf("n2"), "-"));
  EXPECT_FALSE(commit("n2", "u2", 1, Genuine(KeyOf("n2"), "x")).blob_unused);
  // Blobs with other content, or of an upload that no longer exists, are unused.
  Commit(Genuine(KeyOf("n2"), "first"));
  const auto conflict = commit("n2", "u2", 2, Genuine(KeyOf("n2"), "other"));
  EXPECT_EQ(conflict.verdict, CommitVerdicts::kConflict);
  EXPECT_TRUE(conflict.blob_unused);
  EXPECT_TRUE(commit("n3", "u9", 1, Genuine(KeyOf("n3"), "x")).blob_unused);
  // The history refers to the blob of a replaced error.
  Apply(Opening(KeyOf("n4"), "u4"));
  EXPECT_EQ(commit("n4", "u4", 1, Failed(KeyOf("n4"), "why")).verdict, CommitVerdicts::kCommitted);
  Commit(Genuine(KeyOf("n4"), "fine"));
  EXPECT_FALSE(commit("n4", "u4", 1, Failed(KeyOf("n4"), "why")).blob_unused);
  // The end of the run does not change this.
  Apply(EndRun{.run = kRun, .state = RunState::kCancelled});
  const auto late = commit("n1", "u1", 1, Genuine(KeyOf("n1"), "x"));
  EXPECT_EQ(late.verdict, CommitVerdicts::kCancelled);
  EXPECT_FALSE(late.blob_unused);
  EXPECT_TRUE(commit("n3", "u9", 1, Genuine(KeyOf("n3"), "x")).blob_unused);
}

TEST_P(StateStoreContract, HigherAttemptStartsANewUpload) {
  Plan(1);
  Apply(Opening(KeyOf("n1"), "u1", 3));
  const auto stale = Apply(Opening(KeyOf("n1"), "u0", 2));
  EXPECT_EQ(stale.verdict, OpenVerdicts::kStaleAttempt);
  EXPECT_EQ(stale.newest_attempt, 3);
  const auto opened = Apply(Opening(KeyOf("n1"), "u2", 4));
  EXPECT_TRUE(opened.created);
  EXPECT_EQ(opened.upload.id, "u2");
  EXPECT_EQ(opened.upload.epoch, 1);
  EXPECT_EQ(opened.abandoned, "u1");
  EXPECT_FALSE(store().GetUpload("u1")->has_value());
  EXPECT_EQ(store().OpenUploads(kRun)->size(), 1u);
  // Also after the later upload was abandoned.
  EXPECT_TRUE(Apply(AbandonUpload{.upload_id = "u2"}).found);
  EXPECT_FALSE(Apply(AbandonUpload{.upload_id = "u2"}).found);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u3", 3)), OpenVerdicts::kStaleAttempt);
  EXPECT_EQ(Apply(Opening(KeyOf("n1"), "u4", 4)).upload.id, "u4");
  CommitResult lost = Genuine(KeyOf("n1"), "x");
  lost.upload_id = "u2";
  lost.epoch = 1;
  EXPECT_EQ(Commit(lost), CommitVerdicts::kTakenOver);
}

TEST_P(StateStoreContract, UnprovenAttemptDoesNotExcludeOtherSenders) {
  Plan(1);
  OpenUpload forged = Opening(KeyOf("n1"), "u1", INT64_MAX);
  forged.upload.delivery.vouched_by = "spiffe://f.muster/service/relay/r1";
  forged.upload.proven = false;
  EXPECT_TRUE(Apply(forged).created);
  // Through the same relay the higher attempt is the newer one.
  OpenUpload same = forged;
  same.upload.id = "u2";
  same.upload.attempt = 1;
  const auto stale = Apply(same);
  EXPECT_EQ(stale.verdict, OpenVerdicts::kStaleAttempt);
  EXPECT_EQ(stale.newest_attempt, INT64_MAX);
  OpenUpload other = same;
  other.upload.delivery.vouched_by = "spiffe://f.muster/service/relay/r2";
  const auto through_other = Apply(other);
  EXPECT_TRUE(through_other.created);
  EXPECT_EQ(through_other.abandoned, "u1");
  EXPECT_EQ(Apply(forged).abandoned, "u2");
  const auto direct = Apply(Opening(KeyOf("n1"), "u3"));
  EXPECT_TRUE(direct.created);
  EXPECT_EQ(direct.abandoned, "u1");
  // The attempt of the node itself counts against all.
  Apply(Opening(KeyOf("n1"), "u4", 2));
  EXPECT_EQ(OpenVerdict(other), OpenVerdicts::kStaleAttempt);
}

// A relay invents pairs without the proof of the node that it names.
TEST_P(StateStoreContract, RefusedOpenThroughARelayHasTheRelayAsActor) {
  Plan(1);
  OpenUpload forged = OpeningThrough("r1", "u1");
  forged.upload.key.node = "n9";
  EXPECT_EQ(OpenVerdict(forged), OpenVerdicts::kNotPlanned);
  const auto last = [&] { return store().Audit({.run = kRun}, "", 1000)->items.back(); };
  EXPECT_EQ(last().kind, AuditKind::kUnplanned);
  EXPECT_EQ(last().actor, forged.upload.delivery.vouched_by);
  forged.upload.proven = true;
  EXPECT_EQ(OpenVerdict(forged), OpenVerdicts::kNotPlanned);
  EXPECT_EQ(last().actor, forged.upload.delivery.uri);
  // The gateway verified the credential for any node of a plugin.
  OpenUpload legacy = OpeningThrough("-", "u1");
  legacy.upload.key.node = "n8";
  legacy.upload.delivery = {.uri = "spiffe://00.f.muster/plugin/facts",
                            .node_unproven = true,
                            .vouched_by = "spiffe://f.muster/service/gateway/g1"};
  EXPECT_EQ(OpenVerdict(legacy), OpenVerdicts::kNotPlanned);
  EXPECT_EQ(last().actor, "spiffe://00.f.muster/plugin/facts");
}

TEST_P(StateStoreContract, OpenOfTheOwnerProvesTheAttemptOfAnOpenUpload) {
  Plan(1);
  OpenUpload relayed = Opening(KeyOf("n1"), "u1", 5);
  relayed.upload.proven = false;
  Apply(relayed);
  EXPECT_EQ(Apply(Opening(KeyOf("n1"), "u2", 5)).upload.id, "u1");
  Apply(AbandonUpload{.upload_id = "u1"});
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u3", 4)), OpenVerdicts::kStaleAttempt);
}

TEST_P(StateStoreContract, SignedCommitProvesItsAttempt) {
  Plan(1);
  OpenUpload relayed = Opening(KeyOf("n1"), "u1", 5);
  relayed.upload.proven = false;
  Apply(relayed);
  CommitResult commit = Failed(KeyOf("n1"), "why");
  commit.upload_id = "u1";
  commit.epoch = 1;
  commit.signed_attempt = 5;
  EXPECT_EQ(Commit(commit), CommitVerdicts::kCommitted);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u2", 4)), OpenVerdicts::kStaleAttempt);
  EXPECT_EQ(OpenVerdict(Opening(KeyOf("n1"), "u3", 5)), OpenVerdicts::kOpen);
}

TEST_P(StateStoreContract, OpenReturnsACommittedResult) {
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

TEST_P(StateStoreContract, CommitEndsTheUpload) {
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
  // A small result was committed while an upload was open.
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

TEST_P(StateStoreContract, ExpiredUploadsAreListedOldestFirst) {
  Plan(4);
  // They expire 1000 after they were opened.
  Apply(Opening(KeyOf("n1"), "u1", 1, 30));
  Apply(Opening(KeyOf("n2"), "u2", 1, 10));
  Apply(Opening(KeyOf("n3"), "u3", 1, 20));
  const auto ids = [&](int64_t now, int limit) {
    std::string all;
    const auto expired = store().ExpiredUploads(now, limit);
    EXPECT_TRUE(expired.ok()) << expired.status();
    for (const UploadRecord& upload : *expired) absl::StrAppend(&all, upload.id, " ");
    return all;
  };
  EXPECT_EQ(ids(1010, 10), "");
  EXPECT_EQ(ids(1025, 10), "u2 u3 ");
  EXPECT_EQ(ids(9999, 2), "u2 u3 ");
  // A takeover extends the time of the upload.
  Apply(Opening(KeyOf("n2"), "x", 1, 9000));
  EXPECT_EQ(ids(9999, 10), "u3 u1 ");
  Apply(AbandonUpload{.upload_id = "u3"});
  EXPECT_EQ(ids(9999, 10), "u1 ");
}

TEST_P(StateStoreContract, OpenUploadsAreListed) {
  Plan(3);
  Plan2();
  Apply(Opening(KeyOf("n1"), "u1"));
  Apply(Opening(KeyOf("n2"), "u2"));
  Apply(Opening(Other("n1"), "v1"));
  EXPECT_EQ(store().OpenUploads(kRun)->size(), 2u);
  EXPECT_EQ(store().OpenUploads("")->size(), 3u);
  // They remain after the end until their bytes are removed.
  Apply(EndRun{.run = kRun, .state = RunState::kCancelled});
  EXPECT_EQ(store().OpenUploads(kRun)->size(), 2u);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_CONTRACT_UPLOAD_CONTRACT_H_
