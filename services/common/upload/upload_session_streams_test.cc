// Which stream of an upload has an effect, and until when.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "services/common/base/simulated_disk.h"
#include "services/common/upload/testing/upload_fixture.h"

namespace muster::testing {
namespace {

TEST_F(UploadSessionTest, LaterOpenTakesOver) {
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  const UploadRecord before = upload_;
  const UploadAttachment dead = attachment_;
  upload_ = OpenUpload();
  EXPECT_GT(upload_.epoch, before.epoch);
  EXPECT_EQ(*session->Reopen(upload_, kPeer), 5);
  EXPECT_EQ(ReasonOf(detached_), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(session->Attach(before.epoch, kPeer, nullptr).status()), "TAKEN_OVER");
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

TEST_F(UploadSessionTest, OnlyStreamsOfItsOpenerMayAttach) {
  const UploadPeer relay = {{"f.muster", ServiceIdentity{ServiceRole::kRelay, "r1"}}, {}};
  const UploadPeer relayed = {kPeer.identity, relay.identity};
  upload_ = OpenUpload();
  auto session = Session(upload_);
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, kPeer, nullptr).status()), "UPLOAD_NOT_FOUND");
  ASSERT_TRUE(session->Reopen(upload_, kPeer).ok());
  Attach(*session);
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, relay, nullptr).status()), "UPLOAD_NOT_FOUND");
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, relayed, nullptr).status()),
            "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(detached_.ok()) << detached_;
  upload_ = OpenUpload();
  ASSERT_TRUE(session->Reopen(upload_, relayed).ok());
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, kPeer, nullptr).status()), "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(session->Attach(upload_.epoch, relayed, nullptr).ok());
}

TEST_F(UploadSessionTest, AppendWithoutAnAttachmentFails) {
  upload_ = OpenUpload();
  auto session = Session(upload_);
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(0, "hello")).status()), "TAKEN_OVER");
  ASSERT_TRUE(session->Reopen(upload_, kPeer).ok());
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(0, "hello")).status()), "TAKEN_OVER");
  Attach(*session);
  session->Detach(attachment_);
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(0, "hello")).status()), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf("")).status()), "TAKEN_OVER");
}

TEST_F(UploadSessionTest, NoStreamMayAttachOrCompleteWhileACompletionIsInProgress) {
  const std::string data = Pattern(100'000);
  sink_.hold = true;
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, data)).ok());
  const auto outcome = BeginComplete(*session, attachment_, data);
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, kPeer, nullptr).status()), "UPLOAD_COMPLETING");
  EXPECT_EQ(ReasonOf(BeginComplete(*session, attachment_, data)->status()), "UPLOAD_COMPLETING");
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(100'000, "x")).status()), "INVALID_CHUNK");
  EXPECT_TRUE(detached_.ok()) << detached_;
  session->Detach(attachment_);
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, kPeer, nullptr).status()), "UPLOAD_COMPLETING");
  ASSERT_EQ(sink_.held.size(), 1u);
  // It failed undecided: the same may be tried again.
  sink_.held[0].done(absl::InternalError("disk"));
  EXPECT_EQ(outcome->status().message(), "disk");
  Attach(*session);
  const auto again = BeginComplete(*session, attachment_, data);
  ASSERT_EQ(sink_.held.size(), 2u);
  EXPECT_TRUE(sink_.Decide(1).ok());
  EXPECT_TRUE(again->ok()) << again->status();
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, kPeer, nullptr).status()), "UPLOAD_COMPLETING");
  session->Close();
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, kPeer, nullptr).status()), "UPLOAD_NOT_FOUND");
  EXPECT_EQ(Stored("n1"), data);
}

TEST_F(UploadSessionTest, LaterOpenIsNotHeldUpByACompletionOfTheEpochBefore) {
  const std::string data = Pattern(100'000);
  sink_.hold = true;
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, data)).ok());
  const auto dead = BeginComplete(*session, attachment_, data);
  upload_ = OpenUpload();
  EXPECT_EQ(*session->Reopen(upload_, kPeer), 100'000);
  Attach(*session);
  const auto outcome = BeginComplete(*session, attachment_, data);
  ASSERT_EQ(sink_.held.size(), 2u);
  EXPECT_LT(sink_.held[0].verified.epoch, sink_.held[1].verified.epoch);
  EXPECT_EQ(ReasonOf(sink_.Decide(0).status()), "TAKEN_OVER");
  EXPECT_EQ(ReasonOf(dead->status()), "TAKEN_OVER");
  // The failure of the first is not that of the second.
  EXPECT_EQ(ReasonOf(session->Attach(upload_.epoch, kPeer, nullptr).status()), "UPLOAD_COMPLETING");
  EXPECT_TRUE(sink_.Decide(1).ok());
  EXPECT_TRUE(outcome->ok()) << outcome->status();
  EXPECT_EQ(Stored("n1"), data);
}

// The server has not noticed that the connection of the stream was lost: nothing detaches it.
TEST_F(UploadSessionTest, NextStreamResumesAfterAFailedSync) {
  SimulatedDisk disk;
  FilesBlobStoreOptions options;
  options.root = "/blobs";
  options.sync_every = 1;
  const auto blobs = *OpenFilesBlobStore(options, disk);
  upload_ = OpenUpload();
  auto session = Session(upload_, *blobs);
  ASSERT_TRUE(session->Reopen(upload_, kPeer).ok());
  Attach(*session);
  const std::string body = Pattern(100'000);
  ASSERT_TRUE(Append(*session, Chunk(0, body.substr(0, 5))).ok());
  disk.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(5, body.substr(5, 1))).status()), "SYNC_FAILED");
  EXPECT_EQ(ReasonOf(detached_), "SYNC_FAILED");
  EXPECT_EQ(ReasonOf(Append(*session, Chunk(6, body.substr(6, 1))).status()), "TAKEN_OVER");

  // Appends the bytes that are not stored, as the next stream.
  const auto resume = [&] {
    upload_ = OpenUpload();
    const auto offset = session->Reopen(upload_, kPeer);
    ASSERT_TRUE(offset.ok()) << offset.status();
    EXPECT_GE(*offset, 5);
    Attach(*session);
    const auto appended = Append(*session, Chunk(*offset, body.substr(*offset)));
    ASSERT_TRUE(appended.ok()) << appended.status();
  };
  resume();
  disk.FailAt(SimulatedDisk::Call::kSync, 1, EIO);
  EXPECT_EQ(ReasonOf(Complete(*session, FinishOf(body)).status()), "SYNC_FAILED");
  resume();
  const auto completed = Complete(*session, FinishOf(body));
  EXPECT_TRUE(completed.ok()) << completed.status();
}

TEST_F(UploadSessionTest, StreamWithoutProgressIsStalled) {
  auto session = Attached();
  clock_.Advance(absl::Seconds(61));
  EXPECT_GE(session->StalledFor(), absl::Seconds(61));
  EXPECT_TRUE(Append(*session, Chunk(0, "a little")).ok());
  EXPECT_GE(session->StalledFor(), absl::Seconds(61));
  EXPECT_TRUE(Append(*session, Chunk(8, Pattern(70'000))).ok());
  EXPECT_EQ(session->StalledFor(), absl::ZeroDuration());
  session->Detach(attachment_);
  clock_.Advance(absl::Seconds(61));
  EXPECT_EQ(session->StalledFor(), absl::ZeroDuration());  // no stream can be slow
}

TEST_F(UploadSessionTest, EndStalledStreamLeavesOtherStreams) {
  auto session = Attached();
  EXPECT_TRUE(Append(*session, Chunk(0, "hello")).ok());
  session->EndStalledStream(absl::Seconds(60));
  EXPECT_TRUE(session->attached());
  clock_.Advance(absl::Seconds(61));
  const UploadAttachment stalled = attachment_;
  Attach(*session);
  session->EndStalledStream(absl::Seconds(60));  // of the previous stream
  EXPECT_TRUE(session->attached());
  clock_.Advance(absl::Seconds(61));
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
}  // namespace muster::testing
