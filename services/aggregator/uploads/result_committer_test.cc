#include "services/aggregator/uploads/result_committer.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "services/aggregator/testing/test_state.h"
#include "services/common/base/error.h"
#include "services/common/identity/result_signature.h"

namespace muster {
namespace {

using testing::kFleet;
using testing::TestState;

class ResultCommitterTest : public ::testing::Test {
 protected:
  absl::StatusOr<ResultRecord> Commit(VerifiedResult verified) {
    std::promise<absl::StatusOr<ResultRecord>> answer;
    committer_.Commit(std::move(verified), [&](absl::StatusOr<ResultRecord> result) {
      answer.set_value(std::move(result));
    });
    return answer.get_future().get();
  }

  // A result whose bytes are stored with its row.
  static VerifiedResult Small(const std::string& node, const std::string& content) {
    return {.result = Genuine(KeyOf(node), content).result, .attempt = 1};
  }

  // A result whose bytes are an existing blob.
  VerifiedResult InBlob(const std::string& node, const std::string& name,
                        const std::string& content) {
    auto staged = *state_.blobs().Stage(name, -1);
    EXPECT_TRUE(staged->Append(content, 0).ok());
    EXPECT_TRUE(staged->Publish("b/" + name).ok());
    VerifiedResult verified = Small(node, content);
    verified.result.body.clear();
    verified.result.blob = "b/" + name;
    return verified;
  }

  // Removals run on the executor.
  bool IsThere(const std::string& blob) {
    state_.Settle();
    return state_.blobs().Size("b/" + blob).ok();
  }

  TestState state_;
  Metrics metrics_;
  Metrics other_metrics_;
  FakeClock now_{absl::Now()};  // certificates are of today
  ResultCommitter committer_{state_.store(),
                             state_.blobs(),
                             state_.executor(),
                             now_,
                             kFleet,
                             state_.root().certificate(),
                             state_.revocations(),
                             metrics_};
};

TEST_F(ResultCommitterTest, ResultThatExceedsItsRunIsRefusedAndItsBlobRemoved) {
  CreateRun open = MakeRun(kRun, {{"facts", "n1"}, {"facts", "n2"}});
  open.run.deadline_at = 0;
  state_.Apply(std::move(open));
  ResultCommitter limited(state_.store(), state_.blobs(), state_.executor(), now_, kFleet,
                          state_.root().certificate(), state_.revocations(), other_metrics_, 10);
  std::promise<absl::StatusOr<ResultRecord>> answer;
  limited.Commit(InBlob("n1", "large", "12345678901"),
                 [&](absl::StatusOr<ResultRecord> result) { answer.set_value(std::move(result)); });
  const absl::Status refused = answer.get_future().get().status();
  EXPECT_EQ(ReasonOf(refused), "RUN_FULL");
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  EXPECT_NE(refused.message().find("0 bytes: 11 more would exceed its limit of 10"),
            absl::string_view::npos);
  EXPECT_FALSE(IsThere("large"));
}

TEST_F(ResultCommitterTest, RepeatedContentSucceedsAndOtherContentIsAConflict) {
  CreateRun open = MakeRun(kRun, {{"facts", "n1"}, {"facts", "n2"}});
  open.run.deadline_at = 0;  // it takes results today as well
  state_.Apply(std::move(open));
  const auto first = Commit(Small("n1", "content"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->generation, 1);
  EXPECT_EQ(first->committed_at, absl::ToUnixMicros(now_.Now()));
  const auto again = Commit(Small("n1", "content"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->generation, 1);
  EXPECT_EQ(ReasonOf(Commit(Small("n1", "other")).status()), "RESULT_CONFLICT");
  EXPECT_EQ(ReasonOf(Commit(Small("n9", "x")).status()), "PAIR_NOT_PLANNED");
  EXPECT_NE(metrics_.Text().find("muster_commit_seconds_count 4"), std::string::npos);
}

TEST_F(ResultCommitterTest, SecondErrorSucceedsAndReturnsTheFirst) {
  CreateRun open = MakeRun(kRun, {{"facts", "n1"}, {"facts", "n2"}});
  open.run.deadline_at = 0;
  state_.Apply(std::move(open));
  const auto error = [](const std::string& text) {
    return VerifiedResult{.result = Failed(KeyOf("n1"), text).result, .attempt = 1};
  };
  ASSERT_TRUE(Commit(error("first")).ok());
  const auto second = Commit(error("second"));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->error, "first");
  EXPECT_EQ(state_.store().Audit({.run = kRun}, "", 100)->items.back().kind, AuditKind::kConflict);
}

TEST_F(ResultCommitterTest, BlobIsRemovedIfItIsNotTheResult) {
  CreateRun open = MakeRun(kRun, {{"facts", "n1"}, {"facts", "n2"}});
  open.run.deadline_at = 0;
  state_.Apply(std::move(open));
  EXPECT_TRUE(Commit(InBlob("n1", "first", "content")).ok());
  EXPECT_TRUE(Commit(InBlob("n1", "again", "content")).ok());
  EXPECT_FALSE(Commit(InBlob("n1", "other", "another")).ok());
  EXPECT_FALSE(Commit(InBlob("n9", "stray", "x")).ok());
  EXPECT_TRUE(IsThere("first"));
  EXPECT_FALSE(IsThere("again"));
  EXPECT_FALSE(IsThere("other"));
  EXPECT_FALSE(IsThere("stray"));
}

TEST_F(ResultCommitterTest, RepeatedCommitKeepsTheBlobOfTheResult) {
  CreateRun open = MakeRun(kRun, {{"facts", "n1"}, {"facts", "n2"}});
  open.run.deadline_at = 0;
  state_.Apply(std::move(open));
  state_.Apply(Opening(KeyOf("n1"), "u1"));
  VerifiedResult upload = InBlob("n1", "u1", "content");
  upload.upload_id = "u1";
  upload.epoch = 1;
  EXPECT_TRUE(Commit(upload).ok());
  EXPECT_EQ(ReasonOf(Commit(upload).status()), "TAKEN_OVER");
  EXPECT_TRUE(IsThere("u1"));
  VerifiedResult bare = upload;
  bare.upload_id.clear();
  EXPECT_TRUE(Commit(bare).ok());
  EXPECT_TRUE(IsThere("u1"));
  state_.Apply(EndRun{.run = kRun, .state = RunState::kCancelled, .at = 1});
  EXPECT_EQ(ReasonOf(Commit(upload).status()), "RUN_CANCELLED");
  EXPECT_TRUE(IsThere("u1"));
}

TEST_F(ResultCommitterTest, CommitToAnEndedRunFails) {
  state_.Plan({"n1"});  // its deadline was long ago
  EXPECT_EQ(ReasonOf(Commit(Small("n1", "late")).status()), "RUN_SEALED");
  state_.Apply(EndRun{.run = kRun, .state = RunState::kCancelled, .at = 1});
  EXPECT_EQ(ReasonOf(Commit(Small("n1", "late")).status()), "RUN_CANCELLED");
  VerifiedResult nowhere = Small("n1", "x");
  nowhere.result.key.run = "ffffffffffffffff";
  EXPECT_EQ(ReasonOf(Commit(nowhere).status()), "RUN_NOT_FOUND");
}

TEST_F(ResultCommitterTest, SignatureOfAnotherResultOrNodeFails) {
  CreateRun open = MakeRun(kRun, {{"facts", "n1"}, {"facts", "n2"}});
  open.run.deadline_at = 0;
  state_.Apply(std::move(open));
  const absl::Time now = now_.Now();
  const PrivateKey intermediate_key = *PrivateKey::Generate();
  const Intermediate intermediate = *Intermediate::Load(
      kFleet, intermediate_key, *state_.root().SignIntermediate(intermediate_key.public_key(), now),
      state_.root().certificate());
  const RunAuthority authority = *intermediate.CreateRunAuthority(kRun, now, now + absl::Hours(2));
  const PrivateKey key = *PrivateKey::Generate();
  const auto leaf =
      *authority.Issue(RunNodeIdentity{kRun, "facts", "n1"}, key.public_key(), {}, now);
  const std::string chain = ChainToPem(
      std::vector<Certificate>{leaf, authority.fleet_signed(), intermediate.certificate()});

  VerifiedResult good = InBlob("n1", "signed", "content");
  ResultRecord& result = good.result;
  result.delivery.signer_pem = chain;
  result.media_type = "application/json";
  result.file_name = "facts.json";
  result.delivery.signature =
      *SignResult(key, {kRun, "facts", "n1", good.attempt, result.size, result.sha256, false,
                        result.media_type, result.file_name});
  VerifiedResult forged = Small("n1", "other");
  forged.result.delivery = result.delivery;
  EXPECT_EQ(ReasonOf(committer_.CheckSignature(forged)), "INVALID_SIGNATURE");
  VerifiedResult as_error = good;
  as_error.result.outcome = Outcome::kError;
  EXPECT_EQ(ReasonOf(committer_.CheckSignature(as_error)), "INVALID_SIGNATURE");
  VerifiedResult described = good;
  described.result.media_type = "application/gzip";
  EXPECT_EQ(ReasonOf(committer_.CheckSignature(described)), "INVALID_SIGNATURE");
  described = good;
  described.result.file_name = "other.json";
  EXPECT_EQ(ReasonOf(committer_.CheckSignature(described)), "INVALID_SIGNATURE");
  state_.revocations().Add(CertificateSubject(leaf.IssuerKeyId(), leaf.Serial()));
  EXPECT_EQ(ReasonOf(committer_.CheckSignature(good)), "INVALID_SIGNATURE");
  state_.revocations().Replace({});
  const absl::Status checked = committer_.CheckSignature(good);
  EXPECT_TRUE(checked.ok()) << checked;
  EXPECT_TRUE(Commit(good).ok());
  EXPECT_TRUE(IsThere("signed"));
}

}  // namespace
}  // namespace muster
