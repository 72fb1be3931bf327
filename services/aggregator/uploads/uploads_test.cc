#include "services/aggregator/uploads/uploads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/aggregator/testing/uploads_fixture.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/rpc/limits.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

using testing::kFleet;
using testing::kPeer;
using testing::TestState;

const UploadPeer kOtherPeer = {{kFleet, NodeIdentity{"n2"}}, {}};

using UploadsTest = testing::UploadsFixture;

TEST_F(UploadsTest, SecondOpenContinuesWithAHigherEpoch) {
  const auto first = Open(Of("n1"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->offset, 0);
  EXPECT_EQ(first->pace.chunk_max, kChunkMaxLarge);
  EXPECT_EQ(first->expires_at, kCreated + 50'000'000);
  Append(*Attach(*first), *first, "hello");
  const auto second = Open(Of("n1"));
  EXPECT_EQ(second->id, first->id);
  EXPECT_GT(second->epoch, first->epoch);
  EXPECT_EQ(second->offset, 5);
  EXPECT_EQ(ReasonOf(ended_), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(uploads_->Find("0123").status()), "UPLOAD_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Open(Of("n9")).status()), "PAIR_NOT_PLANNED");
}

TEST_F(UploadsTest, HigherAttemptStartsAtOffsetZero) {
  const auto first = *Open(Of("n1"));
  Append(*Attach(first), first, "hello");
  UploadRecord again = Of("n1");
  again.attempt = 2;
  const auto second = *Open(again);
  EXPECT_NE(second.id, first.id);
  EXPECT_EQ(second.offset, 0);
  Settle(**uploads_->Find(second.id));
  EXPECT_EQ(*state_.blobs().ListStaged(), std::vector<std::string>{second.id});
  EXPECT_EQ(ReasonOf(Open(Of("n1")).status()), "TAKEN_OVER");
}

TEST_F(UploadsTest, SweepForgetsExpiredUploads) {
  const auto forgotten = *Open(Of("n1"));
  const auto carried = *Open(Of("n2"));
  const auto session = Attach(carried);
  Append(*Attach(forgotten), forgotten, "hello");
  Detach(forgotten);
  uploads_->Sweep();
  EXPECT_TRUE(uploads_->Find(forgotten.id).ok());
  state_.clock.Advance(absl::Seconds(51));
  const auto young = *Open(Of("n3"));
  uploads_->Sweep();
  Settle(*session);
  EXPECT_EQ(ReasonOf(uploads_->Find(forgotten.id).status()), "UPLOAD_NOT_FOUND");
  EXPECT_FALSE(state_.store().GetUpload(forgotten.id)->has_value());
  EXPECT_TRUE(uploads_->Find(carried.id).ok());  // a stream is at it
  EXPECT_TRUE(uploads_->Find(young.id).ok());
  EXPECT_TRUE(state_.store().GetUpload(young.id)->has_value());
  EXPECT_EQ(state_.blobs().ListStaged()->size(), 2u);
}

TEST_F(UploadsTest, SweepForgetsExpiredUploadsOfAnEarlierProcess) {
  const auto opened = *Open(Of("n1"));
  Begin();
  state_.clock.Advance(absl::Seconds(51));
  uploads_->Sweep();
  EXPECT_FALSE(state_.store().GetUpload(opened.id)->has_value());
  EXPECT_EQ(Open(Of("n1"))->offset, 0);
}

TEST_F(UploadsTest, SweepEndsStalledStreams) {
  Begin({.expiry = absl::Hours(1)});
  const auto opened = *Open(Of("n1"));
  Attach(opened);
  state_.clock.Advance(absl::Seconds(59));
  uploads_->Sweep();
  EXPECT_TRUE(ended_.ok());
  state_.clock.Advance(absl::Seconds(2));
  uploads_->Sweep();
  EXPECT_EQ(ReasonOf(ended_), "UPLOAD_STALLED");
  EXPECT_TRUE(uploads_->Find(opened.id).ok());  // it may come back
}

TEST_F(UploadsTest, RecoveryRemovesBytesWithoutAnUpload) {
  const auto opened = *Open(Of("n1"));
  ASSERT_TRUE((*state_.blobs().Stage("stray", -1))->Append("x", Crc32c("x")).ok());
  Begin();
  ASSERT_TRUE(uploads_->Recover().ok());
  EXPECT_EQ(*state_.blobs().ListStaged(), std::vector<std::string>{opened.id});
}

TEST_F(UploadsTest, StagedBytesOfAnEarlierProcessAreCharged) {
  const auto first = *Open(Of("n1"));
  Append(*Attach(first), first, "hello");
  Detach(first);
  const auto second = *Open(Of("n2"));
  Append(*Attach(second), second, "hi");
  Detach(second);
  Begin();
  ASSERT_TRUE(uploads_->Recover().ok());
  EXPECT_EQ(uploads_->quota().staged(), 7);
  ASSERT_EQ(Open(Of("n1"))->offset, 5);
  EXPECT_EQ(uploads_->quota().staged(), 7);
  uploads_->EndRun(kRun, absl::CancelledError("over"));
  EXPECT_EQ(uploads_->quota().staged(), 0);
  EXPECT_TRUE(state_.blobs().ListStaged()->empty());
}

TEST_F(UploadsTest, UploadWithoutAStreamIsChargedForItsBytes) {
  const auto opened = *Open(Of("n1"));
  auto next = opened;
  const auto session = Attach(opened);
  Append(*session, opened, "hello");
  next.offset = 5;
  Append(*session, next, "!");
  EXPECT_GT(uploads_->quota().staged(), 6);
  uploads_->Sweep();
  EXPECT_GT(uploads_->quota().staged(), 6);
  Detach(opened);
  uploads_->Sweep();
  EXPECT_EQ(uploads_->quota().staged(), 6);
}

TEST_F(UploadsTest, OpenDoesNotWaitForTheDisk) {
  std::promise<void> release;
  ASSERT_TRUE(disk_.Post([held = release.get_future().share()] { held.wait(); }));
  std::promise<absl::StatusOr<OpenedUpload>> answer;
  auto opened = answer.get_future();
  uploads_->Open(Of("n1"), kPeer, std::nullopt,
                 [&](absl::StatusOr<OpenedUpload> result) { answer.set_value(std::move(result)); });
  // This thread is free to answer others.
  EXPECT_EQ(opened.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  release.set_value();
  EXPECT_TRUE(opened.get().ok());
}

TEST_F(UploadsTest, SweepForgetsAnUploadWhoseContentIsAConflict) {
  const auto opened = *Open(Of("n1"));
  const auto session = Attach(opened);
  Append(*session, opened, "hello");
  state_.Apply(Genuine(KeyOf("n1"), "other", kCreated));
  EXPECT_EQ(ReasonOf(Complete(*session, opened, "hello")), "RESULT_CONFLICT");
  uploads_->Sweep();
  EXPECT_EQ(ReasonOf(uploads_->Find(opened.id).status()), "UPLOAD_NOT_FOUND");
  Settle(*session);
  EXPECT_TRUE(state_.blobs().ListStaged()->empty());
}

TEST_F(UploadsTest, SweepForgetsAnUploadThatItsRunHasNoRoomFor) {
  Metrics metrics;
  ResultCommitter limited(state_.store(), state_.blobs(), state_.executor(), state_.clock, kFleet,
                          state_.root().certificate(), state_.revocations(), metrics, 10);
  uploads_.emplace(state_.store(), *blobs_, limited, disk_, state_.clock, state_.streams(),
                   UploadLimits{.expiry = absl::Hours(1), .max_run_bytes = 10});
  const auto opened = *Open(Of("n1"));
  const auto session = Attach(opened);
  Append(*session, opened, "hello");
  state_.Apply(Genuine(KeyOf("n2"), "12345678", kCreated));
  EXPECT_EQ(ReasonOf(Complete(*session, opened, "hello")), "RUN_FULL");
  uploads_->Sweep();
  EXPECT_EQ(ReasonOf(uploads_->Find(opened.id).status()), "UPLOAD_NOT_FOUND");
  EXPECT_EQ(uploads_->quota().sessions(), 0);
  EXPECT_EQ(uploads_->quota().staged(), 0);
  Settle(*session);
  EXPECT_TRUE(state_.blobs().ListStaged()->empty());
  uploads_.reset();
}

TEST_F(UploadsTest, SweepClosesFilesThatNoStreamUses) {
  Begin({.expiry = absl::Hours(1)});
  const auto opened = *Open(Of("n1"));
  const auto session = *uploads_->Find(opened.id);
  state_.clock.Advance(absl::Seconds(59));
  uploads_->Sweep();
  Settle(*session);
  EXPECT_EQ(session->FilesIdleFor(), absl::Seconds(59));
  state_.clock.Advance(absl::Seconds(2));
  uploads_->Sweep();
  Settle(*session);
  EXPECT_EQ(session->FilesIdleFor(), absl::ZeroDuration());
  Append(*Attach(opened), opened, "hello");
}

TEST_F(UploadsTest, SweepRemovesWhatAnExpiredUploadHadPublished) {
  const auto opened = *Open(Of("n1"));
  Begin();
  const std::string blob = ResultBlobName(kRun, opened.id);
  {
    auto staged = *state_.blobs().Resume(opened.id);
    ASSERT_TRUE(staged->Append("hello", Crc32c("hello")).ok());
    ASSERT_TRUE(staged->Publish(blob).ok());
  }
  state_.clock.Advance(absl::Seconds(51));
  uploads_->Sweep();
  std::promise<void> swept;
  ASSERT_TRUE(disk_.Post([&] { swept.set_value(); }));
  swept.get_future().wait();
  EXPECT_TRUE(absl::IsNotFound(state_.blobs().Size(blob).status()));
}

TEST_F(UploadsTest, OpenThatFoundNoSpaceLeavesNoUpload) {
  Begin({.max_result_bytes = INT64_MAX});
  UploadRecord large = Of("n1");
  large.size = int64_t{1} << 62;
  EXPECT_TRUE(absl::IsResourceExhausted(Open(large).status()));
  EXPECT_TRUE(state_.store().OpenUploads("")->empty());
  UploadRecord small = Of("n1");
  small.size = 5;
  const auto opened = Open(small);
  ASSERT_TRUE(opened.ok()) << opened.status();
  Append(*Attach(*opened), *opened, "hello");
}

TEST_F(UploadsTest, UploadsAreLimited) {
  Begin({.max_uploads = 1});
  ASSERT_TRUE(Open(Of("n1")).ok());
  EXPECT_EQ(ReasonOf(Open(Of("n2")).status()), "TOO_MANY_UPLOADS");
}

// The senders lost their connections at the same time.
TEST_F(UploadsTest, InterruptedUploadsAreResumedAtTheLimit) {
  Begin({.max_uploads = 2});
  const auto first = *Open(Of("n1"));
  Append(*Attach(first), first, "hello");
  Detach(first);
  ASSERT_TRUE(TestState::OpenAndWait(*uploads_, Of("n2"), kOtherPeer).ok());
  EXPECT_EQ(ReasonOf(Open(Of("n3")).status()), "TOO_MANY_UPLOADS");
  const auto resumed = Open(Of("n1"));
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->offset, 5);
  UploadRecord again = Of("n1");
  again.attempt = 2;
  EXPECT_TRUE(Open(again).ok());
  EXPECT_EQ(ReasonOf(Open(Of("n3")).status()), "TOO_MANY_UPLOADS");
  uploads_->Forget(Open(again)->id);
  EXPECT_TRUE(Open(Of("n3")).ok());
}

TEST_F(UploadsTest, OneIdentityOpensAtMostHalfOfTheUploads) {
  Begin({.max_uploads = 4});
  ASSERT_TRUE(Open(Of("n1")).ok());
  ASSERT_TRUE(Open(Of("n2")).ok());
  EXPECT_EQ(ReasonOf(Open(Of("n3")).status()), "TOO_MANY_UPLOADS");
  EXPECT_TRUE(TestState::OpenAndWait(*uploads_, Of("n3"), kOtherPeer).ok());
}

TEST_F(UploadsTest, ChunksAndWindowsAreSmallWhileManyUploadsAreOpen) {
  std::vector<UploadQuota::SessionTicket> others;
  for (int i = 1; i < kFewUploads; ++i) {
    others.push_back(*uploads_->quota().ReserveSession(kPeer.identity, kRun));
  }
  const auto few = Open(Of("n1"));
  EXPECT_EQ(few->pace.chunk_max, kChunkMaxLarge);
  EXPECT_EQ(few->pace.window, kUploadWindowLarge / kFewUploads);
  const auto many = Open(Of("n2"));
  EXPECT_EQ(many->pace.chunk_max, kChunkMaxSmall);
  EXPECT_EQ(many->pace.window, kUploadWindowLarge / (kFewUploads + 1) / 2);
}

TEST_F(UploadsTest, AttemptOutsideOfItsRangeFails) {
  UploadRecord upload = Of("n1");
  for (const int64_t attempt : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
    upload.attempt = attempt;
    EXPECT_EQ(ReasonOf(Open(upload).status()), "INVALID_ATTEMPT") << attempt;
  }
  upload.attempt = absl::ToUnixNanos(state_.clock.Now() + absl::Hours(24));
  EXPECT_TRUE(Open(upload).ok());
}

TEST_F(UploadsTest, ResultThatIsTooLargeFailsAtTheOpenAndAtItsBytes) {
  Begin({.expiry = absl::Hours(1), .max_result_bytes = 4});
  UploadRecord upload = Of("n1");
  upload.size = 5;
  EXPECT_EQ(ReasonOf(Open(upload).status()), "RESULT_TOO_LARGE");
  const auto opened = *Open(Of("n1"));
  const auto session = Attach(opened);
  EXPECT_EQ(ReasonOf(TryAppend(*session, opened, "hello")), "RESULT_TOO_LARGE");
  EXPECT_TRUE(TryAppend(*session, opened, "hell").ok());
}

TEST_F(UploadsTest, ResultThatExceedsItsRunFailsAtTheOpen) {
  state_.Apply(Genuine(KeyOf("n1"), "1234", kCreated));
  Begin({.expiry = absl::Hours(1), .max_run_bytes = 10});
  UploadRecord upload = Of("n2");
  upload.size = 7;
  const absl::Status refused = Open(upload).status();
  EXPECT_EQ(ReasonOf(refused), "RUN_FULL");
  EXPECT_EQ(refused.message(),
            "the results of run 00112233445566aa have 4 bytes: 7 more would exceed its limit of "
            "10");
  upload.size = 6;
  EXPECT_TRUE(Open(upload).ok());
}

TEST_F(UploadsTest, StagedBytesAreChargedUntilTheUploadEnds) {
  const auto first = *Open(Of("n1"));
  Append(*Attach(first), first, "hello");
  EXPECT_EQ(uploads_->quota().staged(), 5);
  UploadRecord again = Of("n1");
  again.attempt = 2;
  const auto second = *Open(again);
  EXPECT_EQ(uploads_->quota().staged(), 0);
  Append(*Attach(second), second, "hello");
  uploads_->Forget(second.id);
  EXPECT_EQ(uploads_->quota().staged(), 0);
  const auto third = *Open(Of("n2"));
  Append(*Attach(third), third, "hello");
  EXPECT_EQ(uploads_->quota().staged(), 5);
  uploads_->EndRun(kRun, absl::CancelledError("over"));
  EXPECT_EQ(uploads_->quota().staged(), 0);
}

TEST_F(UploadsTest, OpenOfACommittedResultReturnsItOrAConflict) {
  CommitResult there = Genuine(KeyOf("n1"), "content", kCreated);
  const std::string sha256 = there.result.sha256;
  state_.Apply(std::move(there));
  EXPECT_EQ(Open(Of("n1"))->committed->sha256, sha256);
  UploadRecord same = Of("n1");
  same.sha256 = sha256;
  EXPECT_TRUE(Open(same)->committed.has_value());
  UploadRecord other = Of("n1");
  other.sha256 = std::string(32, 'z');
  EXPECT_EQ(ReasonOf(Open(other).status()), "RESULT_CONFLICT");
  EXPECT_EQ(state_.store().Audit({.run = kRun}, "", 100)->items.back().kind, AuditKind::kConflict);
}

TEST_F(UploadsTest, SealedRunKeepsTheUploadsOfDamagedResultsOnly) {
  for (const char* node : {"n1", "n2"}) {
    state_.Apply(Genuine(KeyOf(node), "content"));
    state_.Apply(RecordDamage{.key = KeyOf(node), .generation = 1, .damage = "differs"});
  }
  std::map<std::string, OpenedUpload> opened;
  for (const char* node : {"n1", "n2", "n3"}) {
    opened[node] = *Open(Of(node));
    Append(*Attach(opened[node]), opened[node], "con");
    Detach(opened[node]);
  }
  const auto found = [&](const std::string& node) { return uploads_->Find(opened[node].id).ok(); };
  ASSERT_TRUE(uploads_->EndUnawaited(kRun, absl::CancelledError("over")).ok());
  EXPECT_TRUE(found("n1"));
  EXPECT_TRUE(found("n2"));
  EXPECT_FALSE(found("n3"));
  EXPECT_EQ(state_.store().OpenUploads(kRun)->size(), 2u);
  EXPECT_EQ(uploads_->quota().staged(), 6);
  // Restored in another way, and found intact after a restart.
  state_.Apply(Genuine(KeyOf("n1"), "content"));
  ASSERT_TRUE(uploads_->EndUnawaited(kRun, absl::CancelledError("over")).ok());
  EXPECT_FALSE(found("n1"));
  Begin();
  ASSERT_TRUE(uploads_->Recover().ok());
  state_.Apply(RecordDamage{.key = KeyOf("n2"), .generation = 1});
  ASSERT_TRUE(uploads_->EndUnawaited(kRun, absl::CancelledError("over")).ok());
  EXPECT_EQ(uploads_->quota().staged(), 0);
  EXPECT_TRUE(state_.store().OpenUploads(kRun)->empty());
}

TEST_F(UploadsTest, EndedRunEndsItsUploads) {
  const auto opened = *Open(Of("n1"));
  Attach(opened);
  uploads_->EndRun(kRun, absl::CancelledError("over"));
  EXPECT_EQ(ended_.message(), "over");
  EXPECT_FALSE(uploads_->Find(opened.id).ok());
  EXPECT_TRUE(state_.blobs().ListStaged()->empty());
}

}  // namespace
}  // namespace muster
