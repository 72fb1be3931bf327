#include "services/common/upload/upload_session.h"

#include <gtest/gtest.h>

#include <string>

#include "services/aggregator/uploads/upload_session_fixture.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/zstd_frame.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

TEST_F(UploadSessionTest, ALargeResultBecomesABlobASmallOneAPartOfTheStore) {
  const std::string large = Pattern(200'000);
  auto session = Attached();
  EXPECT_EQ(*Append(*session, Chunk(0, large.substr(0, 150'000))), 150'000);
  EXPECT_EQ(*Append(*session, Chunk(150'000, large.substr(150'000))), 200'000);
  const auto result = Complete(*session, FinishOf(large));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->blob, ResultBlobName(kRun, "u1"));
  EXPECT_EQ(result->sha256, DigestBytes(Sha256::Of(large)));
  EXPECT_EQ(Stored("n1"), large);

  upload_ = state_.Apply(Opening(KeyOf("n2"), "u2", 1, kCreated)).upload;
  auto second = Session(upload_);
  ASSERT_TRUE(second->Reopen(upload_, kPeer).ok());
  Attach(*second);
  EXPECT_TRUE(Append(*second, Chunk(0, "small")).ok());
  EXPECT_EQ(Complete(*second, FinishOf("small"))->blob, "");
  second->Close();
  EXPECT_EQ(Stored("n2"), "small");
  EXPECT_TRUE(state_.blobs().ListStaged()->empty());
}

TEST_F(UploadSessionTest, ChunksHaveToFitAndToBeWhatTheySay) {
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

TEST_F(UploadSessionTest, ACompressedChunkCountsAsWhatItHolds) {
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

TEST_F(UploadSessionTest, AnotherProcessGoesOnWhereThisOneStopped) {
  const std::string data = Pattern(100'000);
  {
    auto session = Attached();
    EXPECT_TRUE(Append(*session, Chunk(0, data.substr(0, 70'000))).ok());
  }
  auto session = Session(upload_ = OpenInStore());
  EXPECT_EQ(*session->Reopen(upload_, kPeer), 70'000);
  Attach(*session);
  EXPECT_TRUE(Append(*session, Chunk(70'000, data.substr(70'000))).ok());
  const auto result = Complete(*session, FinishOf(data));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->sha256, DigestBytes(Sha256::Of(data)));  // of what came before, too
}

TEST_F(UploadSessionTest, WhatWasPublishedBeforeACrashIsCommittedAfterIt) {
  const std::string data = Pattern(100'000);
  upload_ = OpenInStore();
  {
    auto staged = *state_.blobs().Stage("u1", -1);
    ASSERT_TRUE(staged->Append(data, Crc32c(data)).ok());
    ASSERT_TRUE(staged->Publish(ResultBlobName(kRun, "u1")).ok());
  }
  auto session = Session(upload_);
  EXPECT_EQ(*session->Reopen(upload_, kPeer), 100'000);
  Attach(*session);
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(100'000, "more")).status()), "INVALID_CHUNK");
  ASSERT_TRUE(Complete(*session, FinishOf(data)).ok());
  EXPECT_EQ(Stored("n1"), data);
}

TEST_F(UploadSessionTest, WhatIsNotWhatWasMeantIsNotCommitted) {
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  // More may come: the bytes stay.
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf("hello!")).status()), "SIZE_MISMATCH");
  EXPECT_EQ(*Append(*session, Chunk(5, "?")), 6);
  UploadFinish other = FinishOf("hello!");
  other.crc32c = Crc32c("hello?");
  EXPECT_EQ(ReasonOf(Complete(*session, other).status()), "DIGEST_MISMATCH");
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(6, "!")).status()), "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(state_.blobs().ListStaged()->empty());
  EXPECT_EQ(state_.Run().genuine, 0);
}

TEST_F(UploadSessionTest, UploadGoesOnAfterABadSignature) {
  const std::string data = Pattern(100'000);
  const std::string half = data.substr(0, 80'000);
  auto session = Attached(held_);
  EXPECT_TRUE(Append(*session, Chunk(0, half)).ok());
  held_.signature = absl::PermissionDeniedError("forged");
  EXPECT_EQ(Complete(*session, FinishOf(half)).status(), held_.signature);
  // Nothing was published, and the next stream adds to what was stored.
  EXPECT_TRUE(absl::IsNotFound(state_.blobs().Size(ResultBlobName(kRun, "u1")).status()));
  session->Detach(attachment_);
  upload_ = OpenInStore();
  EXPECT_EQ(*session->Reopen(upload_, kPeer), 80'000);
  Attach(*session);
  EXPECT_TRUE(Append(*session, Chunk(80'000, data.substr(80'000))).ok());
  EXPECT_EQ(Complete(*session, FinishOf(data)).status(), held_.signature);
  held_.signature = absl::OkStatus();
  const auto outcome = BeginComplete(*session, attachment_, data);
  ASSERT_EQ(held_.held.size(), 1u);
  EXPECT_TRUE(Decide(0).ok());
  EXPECT_TRUE(outcome->ok()) << outcome->status();
  EXPECT_EQ(Stored("n1"), data);
}

TEST_F(UploadSessionTest, AnErrorIsKeptAsItsTextToo) {
  OpenUpload opening = Opening(KeyOf("n1"), "u1", 1, kCreated);
  opening.upload.is_error = true;
  upload_ = state_.Apply(std::move(opening)).upload;
  auto session = Session(upload_);
  ASSERT_TRUE(session->Reopen(upload_, kPeer).ok());
  Attach(*session);
  const std::string text(10'000, 'e');
  EXPECT_TRUE(Append(*session, Chunk(0, text)).ok());
  const auto result = Complete(*session, FinishOf(text));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->outcome, Outcome::kError);
  EXPECT_EQ(result->error, text.substr(0, kMaxErrorText));
  EXPECT_EQ(Stored("n1"), text);
}

TEST_F(UploadSessionTest, ErrorThatIsNotUtf8IsStoredAsTextThatIs) {
  OpenUpload opening = Opening(KeyOf("n1"), "u1", 1, kCreated);
  opening.upload.is_error = true;
  upload_ = state_.Apply(std::move(opening)).upload;
  auto session = Session(upload_);
  ASSERT_TRUE(session->Reopen(upload_, kPeer).ok());
  Attach(*session);
  EXPECT_TRUE(Append(*session, Chunk(0, "caf\xe9")).ok());
  const auto result = Complete(*session, FinishOf("caf\xe9"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->error, "caf\xef\xbf\xbd");
  EXPECT_EQ(Stored("n1"), "caf\xe9") << "the bytes that were delivered";
}

TEST_F(UploadSessionTest, WhatHadArrivedCanBeKept) {
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "half a")).ok());
  EXPECT_EQ(*session->KeepPartial("runs/x/partial"), 6);
  EXPECT_EQ(ReasonOf(detached_), "RUN_SEALED");
  EXPECT_EQ(ReadAll(**state_.blobs().Open("runs/x/partial", 0)), "half a");
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(6, "x")).status()), "UPLOAD_NOT_FOUND");
}

}  // namespace
}  // namespace muster
