#include "services/aggregator/uploads/upload_session.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

// Holds each commit until the test decides it, or passes it on.
class HeldSink : public ResultSink {
 public:
  struct Held {
    VerifiedResult verified;
    Done done;
  };

  void Commit(VerifiedResult verified, Done done) override {
    held.push_back({std::move(verified), std::move(done)});
  }

  std::vector<Held> held;
};

// The session runs on the test's own thread, as if that were its strand.
class UploadSessionTest : public ::testing::Test {
 protected:
  void SetUp() override { state_.Plan({"n1", "n2"}); }

  // Opens "u1" for n1 as a sender does before each stream.
  UploadRecord OpenInStore() {
    return state_.Apply(Opening(KeyOf("n1"), "u1", 1, kCreated)).upload;
  }

  std::shared_ptr<UploadSession> Session(const UploadRecord& upload, ResultSink& sink) {
    return std::make_shared<UploadSession>(upload, state_.blobs(), sink, state_.executor(),
                                           state_.clock);
  }
  std::shared_ptr<UploadSession> Session(const UploadRecord& upload) {
    return Session(upload, committer_);
  }

  // A session to which a stream is attached.
  std::shared_ptr<UploadSession> Attached(ResultSink& sink) {
    upload_ = OpenInStore();
    auto session = Session(upload_, sink);
    EXPECT_TRUE(session->Reopen(upload_).ok());
    Attach(*session);
    return session;
  }
  std::shared_ptr<UploadSession> Attached() { return Attached(committer_); }

  // Attaches a stream, as which Append and Complete act from here on.
  UploadAttachment Attach(UploadSession& session) {
    const auto attachment =
        session.Attach(upload_.epoch, [this](const absl::Status& why) { detached_ = why; });
    EXPECT_TRUE(attachment.ok()) << attachment.status();
    return attachment_ = attachment.value_or(UploadAttachment());
  }

  absl::StatusOr<int64_t> Append(UploadSession& session, UploadChunk chunk) {
    ASSIGN_OR_RETURN(const auto ack, session.Append(attachment_, std::move(chunk)));
    return ack.written;
  }

  absl::StatusOr<ResultRecord> Complete(UploadSession& session, const UploadFinish& finish) {
    std::promise<absl::StatusOr<ResultRecord>> answer;
    session.Complete(attachment_, finish, [&](absl::StatusOr<ResultRecord> result) {
      answer.set_value(std::move(result));
    });
    return answer.get_future().get();
  }

  // Begins to complete, as `attachment`; what comes of it goes to the result.
  static std::shared_ptr<absl::StatusOr<ResultRecord>> BeginComplete(
      UploadSession& session, const UploadAttachment& attachment, const std::string& data) {
    auto outcome = std::make_shared<absl::StatusOr<ResultRecord>>(absl::UnknownError("no answer"));
    session.Complete(attachment, FinishOf(data),
                     [outcome](absl::StatusOr<ResultRecord> result) { *outcome = result; });
    return outcome;
  }

  // Lets the committer decide a commit that is held; returns after the session has its outcome.
  absl::StatusOr<ResultRecord> Decide(size_t index) {
    HeldSink::Held& held = held_.held[index];
    std::promise<absl::StatusOr<ResultRecord>> decided;
    committer_.Commit(std::move(held.verified), [&](absl::StatusOr<ResultRecord> result) {
      decided.set_value(std::move(result));
    });
    const auto result = decided.get_future().get();
    held.done(result);
    return result;
  }

  std::string Stored(const std::string& node) {
    const auto result = **state_.store().GetResult(KeyOf(node));
    return result.blob.empty() ? result.body : ReadAll(**state_.blobs().Open(result.blob, 0));
  }

  TestState state_;
  Committer committer_{state_.store(),      state_.blobs(), state_.executor(),
                       state_.clock,        kFleet,         state_.root().certificate(),
                       state_.revocations()};
  HeldSink held_;
  UploadRecord upload_;
  UploadAttachment attachment_;
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
  const UploadAttachment dead = attachment_;
  upload_ = OpenInStore();
  EXPECT_GT(upload_.epoch, before.epoch);
  EXPECT_EQ(*session->Reopen(upload_), 5);
  EXPECT_EQ(ReasonOf(detached_), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(session->Attach(before.epoch, nullptr).status()), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(session->Append(dead, Chunk(5, "!")).status()), "TAKEN_OVER");
  Attach(*session);
  session->Detach(dead);  // the dead stream's end does not close the new one's file
  EXPECT_EQ(*Append(*session, Chunk(5, "!")), 6);
}

TEST_F(UploadSessionTest, SecondAttachOfTheSameEpochInvalidatesTheFirst) {
  auto session = Attached();
  const UploadAttachment first = attachment_;
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  const UploadAttachment second = Attach(*session);
  EXPECT_EQ(ReasonOf(detached_), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(session->Append(first, Chunk(5, "!")).status()), "TAKEN_OVER");
  // A finish of the first that is wrong would end the upload.
  EXPECT_EQ(ReasonOf(BeginComplete(*session, first, "jello")->status()), "TAKEN_OVER");
  session->Detach(first);
  EXPECT_TRUE(session->attached());
  EXPECT_EQ(session->Append(second, Chunk(5, "!"))->written, 6);
  EXPECT_TRUE(Complete(*session, FinishOf("hello!")).ok());
  EXPECT_EQ(Stored("n1"), "hello!");
}

TEST_F(UploadSessionTest, AppendWithoutAnAttachmentFails) {
  upload_ = OpenInStore();
  auto session = Session(upload_);
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(0, "hello")).status()), "TAKEN_OVER");
  ASSERT_TRUE(session->Reopen(upload_).ok());
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(0, "hello")).status()), "TAKEN_OVER");
  Attach(*session);
  session->Detach(attachment_);
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(0, "hello")).status()), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf("")).status()), "TAKEN_OVER");
}

TEST_F(UploadSessionTest, NoStreamMayAttachOrCompleteWhileACompletionIsInProgress) {
  const std::string data = Pattern(100'000);
  auto session = Attached(held_);
  EXPECT_TRUE(Append(*session, Chunk(0, data)).ok());
  const auto outcome = BeginComplete(*session, attachment_, data);
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, nullptr).status()), "UPLOAD_COMPLETING");
  EXPECT_EQ(ReasonOf(BeginComplete(*session, attachment_, data)->status()), "UPLOAD_COMPLETING");
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(100'000, "x")).status()), "INVALID_CHUNK");
  EXPECT_TRUE(detached_.ok()) << detached_;
  session->Detach(attachment_);
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, nullptr).status()), "UPLOAD_COMPLETING");
  ASSERT_EQ(held_.held.size(), 1u);
  // It failed undecided: the same may be tried again.
  held_.held[0].done(absl::InternalError("disk"));
  EXPECT_EQ(outcome->status().message(), "disk");
  Attach(*session);
  const auto again = BeginComplete(*session, attachment_, data);
  ASSERT_EQ(held_.held.size(), 2u);
  EXPECT_TRUE(Decide(1).ok());
  EXPECT_TRUE(again->ok()) << again->status();
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, nullptr).status()), "UPLOAD_COMPLETING");
  session->Close();
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, nullptr).status()), "UPLOAD_NOT_FOUND");
  EXPECT_EQ(Stored("n1"), data);
}

TEST_F(UploadSessionTest, LaterOpenIsNotHeldUpByACompletionOfTheEpochBefore) {
  const std::string data = Pattern(100'000);
  auto session = Attached(held_);
  EXPECT_TRUE(Append(*session, Chunk(0, data)).ok());
  const auto dead = BeginComplete(*session, attachment_, data);
  upload_ = OpenInStore();
  EXPECT_EQ(*session->Reopen(upload_), 100'000);
  Attach(*session);
  const auto outcome = BeginComplete(*session, attachment_, data);
  ASSERT_EQ(held_.held.size(), 2u);
  EXPECT_LT(held_.held[0].verified.epoch, held_.held[1].verified.epoch);
  EXPECT_EQ(ReasonOf(Decide(0).status()), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(dead->status()), "TAKEN_OVER");
  // The failure of the first is not that of the second.
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, nullptr).status()), "UPLOAD_COMPLETING");
  EXPECT_TRUE(Decide(1).ok());
  EXPECT_TRUE(outcome->ok()) << outcome->status();
  state_.Settle();
  EXPECT_EQ(Stored("n1"), data);
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
  session->Detach(attachment_);
  state_.clock.Advance(absl::Seconds(61));
  EXPECT_EQ(session->StalledFor(), absl::ZeroDuration());  // nobody is there to be slow
}

TEST_F(UploadSessionTest, OnlyAStalledStreamIsEnded) {
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  session->EndStalledStream(absl::Seconds(60));
  EXPECT_TRUE(session->attached());
  state_.clock.Advance(absl::Seconds(61));
  const UploadAttachment stalled = attachment_;
  Attach(*session);
  session->EndStalledStream(absl::Seconds(60));  // of the stream that was there before
  EXPECT_TRUE(session->attached());
  state_.clock.Advance(absl::Seconds(61));
  session->EndStalledStream(absl::Seconds(60));
  EXPECT_EQ(ReasonOf(detached_), "UPLOAD_STALLED");
  EXPECT_FALSE(session->attached());
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(5, "!")).status()), "TAKEN_OVER");
  session->Detach(stalled);
  session->Detach(attachment_);
  Attach(*session);
  EXPECT_EQ(*Append(*session, Chunk(5, "!")), 6);
}

}  // namespace
}  // namespace muster
