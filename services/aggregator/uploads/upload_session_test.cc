#include "services/aggregator/uploads/upload_session.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "services/aggregator/testing/test_state.h"
#include "services/aggregator/uploads/blob_names.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/zstd_frame.h"
#include "services/common/blob/blob_test_util.h"

namespace muster {
namespace {

using testing::kFleet;
using testing::TestState;

UploadChunk Chunk(int64_t offset, const std::string& data) {
  return {.offset = offset,
          .raw_size = static_cast<int64_t>(data.size()),
          .crc32c = Crc32c(data),
          .data = data};
}

UploadFinish FinishOf(const std::string& data) {
  return {.size = static_cast<int64_t>(data.size()),
          .crc32c = Crc32c(data),
          .sha256 = DigestBytes(Sha256::Of(data))};
}

// The session runs on the test's own thread, as if that were its strand.
class UploadSessionTest : public ::testing::Test {
 protected:
  void SetUp() override { state_.Plan({"n1", "n2"}); }

  // Opens "u1" for n1 as a sender does before each stream.
  UploadRecord OpenInStore() {
    return state_.Apply(Opening(KeyOf("n1"), "u1", 1, kCreated)).upload;
  }

  std::unique_ptr<UploadSession> Session(const UploadRecord& upload) {
    return std::make_unique<UploadSession>(upload, state_.blobs(), committer_, state_.executor(),
                                           state_.clock);
  }

  // A session that a stream holds.
  std::unique_ptr<UploadSession> Attached() {
    upload_ = OpenInStore();
    auto session = Session(upload_);
    EXPECT_TRUE(session->Reopen(upload_).ok());
    Attach(*session);
    return session;
  }

  void Attach(UploadSession& session) {
    const absl::Status attached =
        session.Attach(upload_.epoch, [this](const absl::Status& why) { detached_ = why; });
    EXPECT_TRUE(attached.ok()) << attached;
  }

  absl::StatusOr<int64_t> Append(UploadSession& session, UploadChunk chunk) {
    ASSIGN_OR_RETURN(const auto ack, session.Append(upload_.epoch, std::move(chunk)));
    return ack.written;
  }

  absl::StatusOr<ResultRecord> Complete(UploadSession& session, const UploadFinish& finish) {
    std::promise<absl::StatusOr<ResultRecord>> answer;
    session.Complete(upload_.epoch, finish, [&](absl::StatusOr<ResultRecord> result) {
      answer.set_value(std::move(result));
    });
    return answer.get_future().get();
  }

  std::string Stored(const std::string& node) {
    const auto result = **state_.store().GetResult(KeyOf(node));
    return result.blob.empty() ? result.body : ReadAll(**state_.blobs().Open(result.blob, 0));
  }

  TestState state_;
  Committer committer_{state_.store(),      state_.blobs(), state_.executor(),
                       state_.clock,        kFleet,         state_.root().certificate(),
                       state_.revocations()};
  UploadRecord upload_;
  absl::Status detached_;
};

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
  ASSERT_TRUE(second->Reopen(upload_).ok());
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

TEST_F(UploadSessionTest, ALaterOpenTakesOver) {
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  const UploadRecord before = upload_;
  upload_ = OpenInStore();
  EXPECT_GT(upload_.epoch, before.epoch);
  EXPECT_EQ(*session->Reopen(upload_), 5);
  EXPECT_EQ(ReasonOf(detached_), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(session->Attach(before.epoch, nullptr)), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(session->Append(before.epoch, Chunk(5, "!")).status()), "TAKEN_OVER");
  session->Detach(before.epoch);  // the dead stream's end does not close the new one's file
  EXPECT_EQ(*Append(*session, Chunk(5, "!")), 6);
}

TEST_F(UploadSessionTest, AnotherProcessGoesOnWhereThisOneStopped) {
  const std::string data = Pattern(100'000);
  {
    auto session = Attached();
    EXPECT_TRUE(Append(*session, Chunk(0, data.substr(0, 70'000))).ok());
  }
  auto session = Session(upload_ = OpenInStore());
  EXPECT_EQ(*session->Reopen(upload_), 70'000);
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
  EXPECT_EQ(*session->Reopen(upload_), 100'000);
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

TEST_F(UploadSessionTest, AnErrorIsKeptAsItsTextToo) {
  OpenUpload opening = Opening(KeyOf("n1"), "u1", 1, kCreated);
  opening.upload.is_error = true;
  upload_ = state_.Apply(std::move(opening)).upload;
  auto session = Session(upload_);
  ASSERT_TRUE(session->Reopen(upload_).ok());
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
  ASSERT_TRUE(session->Reopen(upload_).ok());
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

TEST_F(UploadSessionTest, AStreamCountsAsAliveByWhatItBrings) {
  auto session = Attached();
  state_.clock.Advance(absl::Seconds(61));
  EXPECT_GE(session->StalledFor(), absl::Seconds(61));
  EXPECT_TRUE(Append(*session, Chunk(0, "a little")).ok());
  EXPECT_GE(session->StalledFor(), absl::Seconds(61));
  EXPECT_TRUE(Append(*session, Chunk(8, Pattern(70'000))).ok());
  EXPECT_EQ(session->StalledFor(), absl::ZeroDuration());
  session->Detach(upload_.epoch);
  state_.clock.Advance(absl::Seconds(61));
  EXPECT_EQ(session->StalledFor(), absl::ZeroDuration());  // nobody is there to be slow
}

}  // namespace
}  // namespace muster
