#include "services/common/upload/upload_session.h"

#include <gtest/gtest.h>

#include <string>

#include "services/common/base/status_macros.h"
#include "services/common/base/zstd_frame.h"
#include "services/common/errors/results.h"
#include "services/common/upload/blob_names.h"
#include "services/common/upload/testing/upload_fixture.h"

namespace muster::testing {
namespace {

TEST_F(UploadSessionTest, LargeResultIsABlobAndSmallResultIsInline) {
  const std::string large = Pattern(200'000);
  auto session = Attached();
  EXPECT_EQ(*Append(*session, Chunk(0, large.substr(0, 150'000))), 150'000);
  EXPECT_EQ(*Append(*session, Chunk(150'000, large.substr(150'000))), 200'000);
  const auto result = Complete(*session, FinishOf(large));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->blob, ResultBlobName(kUploadRun, "u1"));
  EXPECT_EQ(result->sha256, DigestBytes(Sha256::Of(large)));
  EXPECT_EQ(Stored("n1"), large);

  auto second = Attached(OpenUpload("u2", "n2"));
  EXPECT_TRUE(Append(*second, Chunk(0, "small")).ok());
  EXPECT_EQ(Complete(*second, FinishOf("small"))->blob, "");
  second->Close();
  EXPECT_EQ(Stored("n2"), "small");
  EXPECT_TRUE(blobs_->ListStaged()->empty());
}

TEST_F(UploadSessionTest, ChunkWithWrongOffsetSizeOrChecksumFails) {
  auto session = Attached();
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(5, "x")).status()), "OFFSET_TOO_HIGH");
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(-1, "x")).status()), "INVALID_OFFSET");
  UploadChunk damaged = Chunk(0, "hello");
  damaged.data[0] = 'j';
  EXPECT_EQ(ReasonOf(Append(*session, damaged).status()), "CRC_MISMATCH");
  UploadChunk longer = Chunk(0, "hello");
  ++longer.raw_size;
  EXPECT_EQ(ReasonOf(Append(*session, longer).status()), "INVALID_CHUNK");
  EXPECT_EQ(*Append(*session, Chunk(0, "hello")), 5);  // nothing of these was kept
  EXPECT_EQ(*Append(*session, Chunk(0, "hello")), 5);  // once more
  EXPECT_EQ(*Append(*session, Chunk(1, "ell")), 5);
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(1, "all")).status()), "INVALID_CHUNK");
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(3, "lo!")).status()), "INVALID_CHUNK");
  EXPECT_TRUE(Complete(*session, FinishOf("hello")).ok());
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(5, "!")).status()), "INVALID_CHUNK");
  EXPECT_EQ(Stored("n1"), "hello");
}

TEST_F(UploadSessionTest, CompressedChunkIsStoredAsItsRawBytes) {
  const std::string text(100'000, 'a');
  std::string frame;
  CompressFrame(text, &frame);
  UploadChunk chunk = Chunk(0, text);
  chunk.zstd = true;
  chunk.data = frame;
  auto session = Attached();
  UploadChunk bomb = chunk;
  bomb.raw_size = 1000;  // more comes out than it says
  EXPECT_EQ(ReasonOf(Append(*session, bomb).status()), "INVALID_CHUNK");
  EXPECT_EQ(*Append(*session, chunk), 100'000);
  EXPECT_TRUE(Complete(*session, FinishOf(text)).ok());
  EXPECT_EQ(Stored("n1"), text);
}

TEST_F(UploadSessionTest, UploadIsResumedByAnotherProcess) {
  const std::string data = Pattern(100'000);
  {
    auto session = Attached();
    EXPECT_TRUE(Append(*session, Chunk(0, data.substr(0, 70'000))).ok());
  }
  auto session = Session(upload_ = OpenUpload());
  EXPECT_EQ(*session->Reopen(upload_, kPeer), 70'000);
  Attach(*session);
  EXPECT_TRUE(Append(*session, Chunk(70'000, data.substr(70'000))).ok());
  const auto result = Complete(*session, FinishOf(data));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->sha256, DigestBytes(Sha256::Of(data)));  // of what came before, too
}

TEST_F(UploadSessionTest, BlobPublishedBeforeACrashIsCommittedAfterIt) {
  const std::string data = Pattern(100'000);
  upload_ = OpenUpload();
  {
    auto staged = *blobs_->Stage("u1", -1);
    ASSERT_TRUE(staged->Append(data, Crc32c(data)).ok());
    ASSERT_TRUE(staged->Publish(ResultBlobName(kUploadRun, "u1")).ok());
  }
  auto session = Session(upload_);
  EXPECT_EQ(*session->Reopen(upload_, kPeer), 100'000);
  Attach(*session);
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(100'000, "more")).status()), "INVALID_CHUNK");
  ASSERT_TRUE(Complete(*session, FinishOf(data)).ok());
  EXPECT_EQ(Stored("n1"), data);
}

TEST_F(UploadSessionTest, ChecksumOfPublishedBytesIsCompared) {
  const std::string data = Pattern(100'000);
  const std::string blob = ResultBlobName(kUploadRun, "u1");
  const auto publish = [&](const std::string& bytes) {
    auto staged = *blobs_->Stage("u1", -1);
    ASSERT_TRUE(staged->Append(bytes, Crc32c(bytes)).ok());
    ASSERT_TRUE(staged->Publish(blob).ok());
  };
  publish(data);
  UploadFinish other = FinishOf(data);
  other.sha256.clear();
  other.crc32c = Crc32c("other");
  EXPECT_EQ(ReasonOf(Complete(*Attached(), other).status()), "CRC_MISMATCH");
  EXPECT_TRUE(absl::IsNotFound(blobs_->Size(blob).status()));
  publish(data);
  UploadFinish without = FinishOf(data);
  without.crc32c.reset();
  const auto result = Complete(*Attached(), without);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->crc32c, Crc32c(data));
}

TEST_F(UploadSessionTest, CompletionWithWrongSizeOrDigestFails) {
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  // More may come: the bytes stay.
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf("hello!")).status()), "SIZE_MISMATCH");
  EXPECT_EQ(*Append(*session, Chunk(5, "?")), 6);
  UploadFinish other = FinishOf("hello!");
  other.crc32c = Crc32c("hello?");
  EXPECT_EQ(ReasonOf(Complete(*session, other).status()), "DIGEST_MISMATCH");
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(6, "!")).status()), "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(blobs_->ListStaged()->empty());
  EXPECT_EQ(sink_.Find("n1"), nullptr);
}

TEST_F(UploadSessionTest, ResultOfAnotherSizeThanAnnouncedEndsTheUpload) {
  UploadRecord upload = OpenUpload();
  upload.size = 6;
  auto session = Attached(upload);
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf("hello")).status()), "SIZE_MISMATCH");
  EXPECT_TRUE(session->ended());
  EXPECT_EQ(sink_.released, std::vector<std::string>{"u1"});
  // Stored bytes beyond the end of the result cannot be corrected either.
  session = Attached(OpenUpload("u2"));
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf("hell")).status()), "SIZE_MISMATCH");
  EXPECT_TRUE(session->ended());
}

TEST_F(UploadSessionTest, ReopenWithASizeBelowTheStoredBytesEndsTheUpload) {
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  upload_ = OpenUpload();
  upload_.size = 5;
  EXPECT_EQ(*session->Reopen(upload_, kPeer), 5);
  upload_ = OpenUpload();
  upload_.size = 4;
  EXPECT_EQ(ReasonOf(session->Reopen(upload_, kPeer).status()), "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(session->ended());
  EXPECT_EQ(sink_.released, std::vector<std::string>{"u1"});
  EXPECT_TRUE(blobs_->ListStaged()->empty());
}

TEST_F(UploadSessionTest, ReopenWithAnotherSizeRemovesPublishedBytes) {
  const std::string data = Pattern(100'000);
  const std::string blob = ResultBlobName(kUploadRun, "u1");
  {
    auto staged = *blobs_->Stage("u1", -1);
    ASSERT_TRUE(staged->Append(data, Crc32c(data)).ok());
    ASSERT_TRUE(staged->Publish(blob).ok());
  }
  upload_ = OpenUpload();
  upload_.size = 100'001;
  EXPECT_EQ(ReasonOf(Session(upload_)->Reopen(upload_, kPeer).status()), "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(absl::IsNotFound(blobs_->Size(blob).status()));
}

// The sender is not at fault: it opens the upload again and sends all bytes.
TEST_F(UploadSessionTest, BytesOfAnotherSenderThatDifferEndTheUploadWithUploadNotFound) {
  const UploadPeer relayed = {kPeer.identity,
                              Identity{"f.muster", ServiceIdentity{ServiceRole::kRelay, "r1"}}};
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "evil")).ok());
  ASSERT_TRUE(session->Reopen(OpenUpload(), relayed).ok());
  ASSERT_TRUE(session->Reopen(upload_ = OpenUpload(), kPeer).ok());
  // A later open by the same sender does not change that.
  ASSERT_TRUE(session->Reopen(upload_ = OpenUpload(), kPeer).ok());
  Attach(*session);
  EXPECT_TRUE(Append(*session, Chunk(4, "o")).ok());
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf("hello")).status()), "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(session->ended());
  EXPECT_TRUE(blobs_->ListStaged()->empty());
}

TEST_F(UploadSessionTest, DigestMismatchRemovesPublishedBytes) {
  const std::string data = Pattern(100'000);
  const std::string blob = ResultBlobName(kUploadRun, "u1");
  sink_.hold = true;
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, data)).ok());
  const auto first = BeginComplete(*session, attachment_, data);
  sink_.held[0].done(absl::UnavailableError("the store is busy"));
  EXPECT_TRUE(blobs_->Size(blob).ok());
  UploadFinish other = FinishOf(data);
  other.sha256[0] ^= 1;
  EXPECT_EQ(ReasonOf(Complete(*session, other).status()), "DIGEST_MISMATCH");
  EXPECT_TRUE(absl::IsNotFound(blobs_->Size(blob).status()));
  EXPECT_EQ(sink_.released, std::vector<std::string>{"u1"});
  // The next process receives all bytes again.
  auto next = Session(upload_ = OpenUpload());
  EXPECT_EQ(*next->Reopen(upload_, kPeer), 0);
}

TEST_F(UploadSessionTest, SizeMismatchRemovesPublishedBytes) {
  const std::string data = Pattern(100'000);
  const std::string blob = ResultBlobName(kUploadRun, "u1");
  {
    auto staged = *blobs_->Stage("u1", -1);
    ASSERT_TRUE(staged->Append(data, Crc32c(data)).ok());
    ASSERT_TRUE(staged->Publish(blob).ok());
  }
  auto session = Attached();
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf(data + "more")).status()), "SIZE_MISMATCH");
  EXPECT_TRUE(absl::IsNotFound(blobs_->Size(blob).status()));
  EXPECT_EQ(ReasonOf(session->Reopen(OpenUpload(), kPeer).status()), "UPLOAD_NOT_FOUND");
}

TEST_F(UploadSessionTest, UploadContinuesAfterABadSignature) {
  const std::string data = Pattern(100'000);
  const std::string half = data.substr(0, 80'000);
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, half)).ok());
  sink_.signature = absl::PermissionDeniedError("forged");
  EXPECT_EQ(Complete(*session, FinishOf(half)).status(), sink_.signature);
  // Nothing was published, and the next stream adds to what was stored.
  EXPECT_TRUE(absl::IsNotFound(blobs_->Size(ResultBlobName(kUploadRun, "u1")).status()));
  session->Detach(attachment_);
  upload_ = OpenUpload();
  EXPECT_EQ(*session->Reopen(upload_, kPeer), 80'000);
  Attach(*session);
  EXPECT_TRUE(Append(*session, Chunk(80'000, data.substr(80'000))).ok());
  EXPECT_EQ(Complete(*session, FinishOf(data)).status(), sink_.signature);
  sink_.signature = absl::OkStatus();
  EXPECT_TRUE(Complete(*session, FinishOf(data)).ok());
  EXPECT_EQ(Stored("n1"), data);
}

TEST_F(UploadSessionTest, ErrorResultHasItsText) {
  UploadRecord error = OpenUpload();
  error.is_error = true;
  auto session = Attached(error);
  const std::string text(10'000, 'e');
  EXPECT_TRUE(Append(*session, Chunk(0, text)).ok());
  const auto result = Complete(*session, FinishOf(text));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome, Outcome::kError);
  EXPECT_EQ(result->error, text.substr(0, kMaxErrorText));
  EXPECT_EQ(Stored("n1"), text);
}

TEST_F(UploadSessionTest, ErrorWithoutATextHasAReason) {
  UploadRecord error = OpenUpload();
  error.is_error = true;
  auto session = Attached(error);
  EXPECT_TRUE(Append(*session, Chunk(0, " \n")).ok());
  const auto result = Complete(*session, FinishOf(" \n"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->error, "the sender gave no reason");
  EXPECT_EQ(Stored("n1"), " \n") << "the bytes that were delivered";
}

TEST_F(UploadSessionTest, ErrorThatIsNotUtf8IsStoredAsTextThatIs) {
  UploadRecord error = OpenUpload();
  error.is_error = true;
  auto session = Attached(error);
  EXPECT_TRUE(Append(*session, Chunk(0, "caf\xe9")).ok());
  const auto result = Complete(*session, FinishOf("caf\xe9"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->error, "caf\xef\xbf\xbd");
  EXPECT_EQ(Stored("n1"), "caf\xe9") << "the bytes that were delivered";
}

TEST_F(UploadSessionTest, KeepPartialPublishesTheStoredBytes) {
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "half a")).ok());
  EXPECT_EQ(*session->KeepPartial("runs/x/partial"), 6);
  EXPECT_EQ(ReasonOf(detached_), "RUN_SEALED");
  EXPECT_EQ(ReadAll(**blobs_->Open("runs/x/partial", 0)), "half a");
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(6, "x")).status()), "UPLOAD_NOT_FOUND");
}

TEST_F(UploadSessionTest, KeepPartialOfACommittedUploadKeepsTheResult) {
  const std::string data = Pattern(100'000);
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, data)).ok());
  ASSERT_TRUE(Complete(*session, FinishOf(data)).ok());
  // The seal listed the upload before it was committed.
  EXPECT_EQ(*Session(upload_)->KeepPartial("runs/x/partial"), 0);
  EXPECT_EQ(Stored("n1"), data);
}

TEST_F(UploadSessionTest, ConflictEndsTheUploadAndRemovesItsBytes) {
  sink_.hold = true;
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  const auto outcome = BeginComplete(*session, attachment_, "hello");
  sink_.held[0].done(errors::ResultConflict("facts", "n1"));
  EXPECT_EQ(ReasonOf(outcome->status()), "RESULT_CONFLICT");
  EXPECT_TRUE(session->ended());
  Settle(*session);
  EXPECT_TRUE(blobs_->ListStaged()->empty());
}

TEST_F(UploadSessionTest, DiscardRemovesWhatWasPublishedWithoutACommit) {
  const std::string data = Pattern(100'000);
  const std::string blob = ResultBlobName(kUploadRun, "u1");
  sink_.hold = true;
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, data)).ok());
  BeginComplete(*session, attachment_, data);
  sink_.held[0].done(absl::InternalError("disk"));
  EXPECT_TRUE(blobs_->Size(blob).ok());
  session->Discard(errors::TakenOver("u1"));
  EXPECT_TRUE(absl::IsNotFound(blobs_->Size(blob).status()));
}

TEST_F(UploadSessionTest, DiscardOfAnUnopenedUploadRemovesWhatACrashLeft) {
  upload_ = OpenUpload();
  const std::string blob = ResultBlobName(kUploadRun, "u1");
  {
    auto staged = *blobs_->Stage("u1", -1);
    ASSERT_TRUE(staged->Append("hello", Crc32c("hello")).ok());
    ASSERT_TRUE(staged->Publish(blob).ok());
  }
  Session(upload_)->Discard(errors::TakenOver("u1"));
  EXPECT_TRUE(absl::IsNotFound(blobs_->Size(blob).status()));
}

TEST_F(UploadSessionTest, DiscardKeepsTheBlobOfACommitInProgress) {
  const std::string data = Pattern(100'000);
  sink_.hold = true;
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, data)).ok());
  BeginComplete(*session, attachment_, data);
  session->Discard(errors::TakenOver("u1"));
  EXPECT_TRUE(sink_.Decide(0).ok());
  EXPECT_EQ(Stored("n1"), data);
}

TEST_F(UploadSessionTest, FilesWithoutAStreamAreClosed) {
  upload_ = OpenUpload();
  auto session = Session(upload_);
  EXPECT_EQ(session->FilesIdleFor(), absl::ZeroDuration());
  ASSERT_TRUE(session->Reopen(upload_, kPeer).ok());
  clock_.Advance(absl::Seconds(7));
  EXPECT_EQ(session->FilesIdleFor(), absl::Seconds(7));
  session->CloseFiles();
  EXPECT_EQ(session->FilesIdleFor(), absl::ZeroDuration());
  // The next stream opens them again; then they stay open.
  Attach(*session);
  clock_.Advance(absl::Seconds(7));
  EXPECT_EQ(session->FilesIdleFor(), absl::ZeroDuration());
  session->CloseFiles();
  EXPECT_EQ(*Append(*session, Chunk(0, "hello")), 5);
}

TEST_F(UploadSessionTest, IdleFilesAreClosedAfterTheLimit) {
  upload_ = OpenUpload();
  auto session = Session(upload_);
  ASSERT_TRUE(session->Reopen(upload_, kPeer).ok());
  clock_.Advance(absl::Seconds(10));
  session->CloseIdleFiles(absl::Seconds(10));
  executor_.AwaitIdle();
  EXPECT_EQ(session->FilesIdleFor(), absl::Seconds(10));
  clock_.Advance(absl::Seconds(1));
  session->CloseIdleFiles(absl::Seconds(10));
  executor_.AwaitIdle();
  EXPECT_EQ(session->FilesIdleFor(), absl::ZeroDuration());
}

}  // namespace
}  // namespace muster::testing
