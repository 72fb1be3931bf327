#include "services/common/upload/upload_receiver.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/metrics.h"
#include "services/common/rpc/limits.h"
#include "services/common/upload/testing/upload_fixture.h"

namespace muster::testing {
namespace {

// A stream whose peer is the test. Thread-safe.
class FakeConnection : public UploadConnection {
 public:
  explicit FakeConnection(OpenStreams& streams) : streams_(streams) {}

  absl::StatusOr<std::shared_ptr<UploadSession>> FindSession(
      const v1::UploadRequest::Start& start) override {
    if (session == nullptr || start.upload_id() != session->id()) {
      return errors::UploadNotFound(start.upload_id());
    }
    return session;
  }
  UploadPeer Peer() const override { return kPeer; }
  absl::StatusOr<UploadTicket> Count() override {
    UploadTicket ticket;
    ASSIGN_OR_RETURN(ticket.of_caller,
                     streams_.Enter("/Upload", "n1", {.in_all = 0, .of_caller = 1}));
    return ticket;
  }
  void ReadNext() override {
    MutexLock lock(mutex_);
    EXPECT_FALSE(reading_) << "a message is asked for twice";
    reading_ = true;
  }
  bool SendAck(const UploadAck& ack) override {
    MutexLock lock(mutex_);
    if (blocked_) return false;
    acks_.push_back(ack);
    return true;
  }
  void EndCommitted(UploadSession&, ResultRecord result) override {
    MutexLock lock(mutex_);
    if (end_) return;
    end_ = absl::OkStatus();
    committed_ = std::move(result);
  }
  void End(const absl::Status& status) override {
    MutexLock lock(mutex_);
    if (!end_) end_ = status;
  }

  // Returns true if the receiver asked for a message since the last Deliver.
  bool reading() {
    MutexLock lock(mutex_);
    return reading_;
  }
  void NoteDelivered() {
    MutexLock lock(mutex_);
    EXPECT_TRUE(reading_) << "nothing was asked for";
    reading_ = false;
  }
  void Block(bool blocked) {
    MutexLock lock(mutex_);
    blocked_ = blocked;
  }
  std::vector<int64_t> acks() {
    MutexLock lock(mutex_);
    std::vector<int64_t> written;
    for (const UploadAck& ack : acks_) written.push_back(ack.written);
    return written;
  }
  std::optional<absl::Status> end() {
    MutexLock lock(mutex_);
    return end_;
  }
  std::string end_reason() {
    const auto status = end();
    return status ? ReasonOf(*status) : "not ended";
  }
  std::optional<ResultRecord> committed() {
    MutexLock lock(mutex_);
    return committed_;
  }

  std::shared_ptr<UploadSession> session;

 private:
  OpenStreams& streams_;
  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool blocked_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<UploadAck> acks_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  std::optional<ResultRecord> committed_ ABSL_GUARDED_BY(mutex_);
};

class UploadReceiverTest : public UploadSessionTest {
 protected:
  // A receiver that asked for its first message, and its connection.
  struct Stream {
    std::shared_ptr<FakeConnection> connection;
    std::shared_ptr<UploadReceiver> receiver;
  };

  void SetUp() override {
    upload_ = OpenUpload();
    session_ = Session(upload_);
    ASSERT_TRUE(session_->Reopen(upload_, kPeer).ok());
  }

  Stream Begin() { return Begin(session_); }
  Stream Begin(std::shared_ptr<UploadSession> session) {
    Stream stream;
    stream.connection = std::make_shared<FakeConnection>(streams_);
    stream.connection->session = std::move(session);
    stream.receiver = std::make_shared<UploadReceiver>(stream.connection, budget_);
    stream.receiver->Begin();
    return stream;
  }

  Stream BeginAttached() {
    Stream stream = Begin();
    Deliver(stream, Start());
    Settle(*session_);
    EXPECT_TRUE(session_->attached());
    return stream;
  }

  static void Deliver(Stream& stream, v1::UploadRequest request) {
    stream.connection->NoteDelivered();
    stream.receiver->Receive(std::move(request));
  }

  v1::UploadRequest Start() { return Start(upload_); }
  static v1::UploadRequest Start(const UploadRecord& upload) {
    v1::UploadRequest request;
    request.mutable_start()->set_upload_id(upload.id);
    request.mutable_start()->set_epoch(upload.epoch);
    return request;
  }

  static v1::UploadRequest ChunkOf(int64_t offset, const std::string& data) {
    v1::UploadRequest request;
    request.mutable_chunk()->set_offset(offset);
    request.mutable_chunk()->set_raw_size(static_cast<int64_t>(data.size()));
    request.mutable_chunk()->set_crc32c(Crc32c(data));
    request.mutable_chunk()->set_data(data);
    return request;
  }

  static v1::UploadRequest Finish(const std::string& data) {
    v1::UploadRequest request;
    request.mutable_finish()->set_size(static_cast<int64_t>(data.size()));
    request.mutable_finish()->set_crc32c(Crc32c(data));
    return request;
  }

  // Holds the strand until the result is set.
  std::shared_ptr<std::promise<void>> HoldStrand() {
    auto release = std::make_shared<std::promise<void>>();
    auto held = std::make_shared<std::promise<void>>();
    EXPECT_TRUE(session_->strand().Post([held, future = release->get_future().share()] {
      held->set_value();
      future.wait();
    }));
    held->get_future().wait();
    return release;
  }

  Metrics metrics_;
  OpenStreams streams_{metrics_};
  ReadAheadBudget budget_{10};
  std::shared_ptr<UploadSession> session_;  // has a ticket of streams_
};

TEST_F(UploadReceiverTest, ChunksAreAcknowledgedAndCommitted) {
  Stream stream = BeginAttached();
  Deliver(stream, ChunkOf(0, "hello"));
  Settle(*session_);
  EXPECT_EQ(stream.connection->acks(), std::vector<int64_t>({5}));
  Deliver(stream, ChunkOf(5, " you"));
  Settle(*session_);
  Deliver(stream, Finish("hello you"));
  Settle(*session_);
  EXPECT_EQ(stream.connection->acks(), std::vector<int64_t>({5, 9}));
  ASSERT_TRUE(stream.connection->committed());
  EXPECT_EQ(stream.connection->committed()->size, 9);
  EXPECT_FALSE(stream.connection->reading()) << "nothing follows a finish";
  stream.receiver->Ended();
  Settle(*session_);
  EXPECT_FALSE(session_->attached());
}

TEST_F(UploadReceiverTest, ChunkOfAnUnknownEncodingFails) {
  Stream stream = BeginAttached();
  v1::UploadRequest chunk = ChunkOf(0, "hello");
  chunk.mutable_chunk()->set_encoding(static_cast<v1::UploadRequest::Encoding>(2));
  Deliver(stream, chunk);
  Settle(*session_);
  EXPECT_EQ(stream.connection->end_reason(), "INVALID_CHUNK");
}

TEST_F(UploadReceiverTest, OneChunkIsReadAheadIfTheBudgetPermits) {
  Stream stream = BeginAttached();
  const auto release = HoldStrand();
  Deliver(stream, ChunkOf(0, "hello"));
  EXPECT_EQ(budget_.left(), 5);
  Deliver(stream, ChunkOf(5, "hello"));
  EXPECT_EQ(budget_.left(), 0);
  EXPECT_FALSE(stream.connection->reading()) << "two chunks wait";
  release->set_value();
  Settle(*session_);
  EXPECT_TRUE(stream.connection->reading());
  EXPECT_EQ(budget_.left(), 10);
}

TEST_F(UploadReceiverTest, NoChunkIsReadAheadOfOneThatTheBudgetHasNoBytesFor) {
  Stream stream = BeginAttached();
  const auto release = HoldStrand();
  Deliver(stream, ChunkOf(0, "more than ten bytes"));
  EXPECT_FALSE(stream.connection->reading());
  EXPECT_EQ(budget_.left(), 10);
  release->set_value();
  Settle(*session_);
  EXPECT_TRUE(stream.connection->reading());
}

TEST_F(UploadReceiverTest, AcknowledgementsAreMergedWhileOneIsSent) {
  Stream stream = BeginAttached();
  stream.connection->Block(true);
  Deliver(stream, ChunkOf(0, "hello"));
  Settle(*session_);
  Deliver(stream, ChunkOf(5, "hello"));
  Settle(*session_);
  EXPECT_TRUE(stream.connection->acks().empty());
  stream.connection->Block(false);
  stream.receiver->SendDue();
  stream.receiver->SendDue();
  EXPECT_EQ(stream.connection->acks(), std::vector<int64_t>({10}));
}

TEST_F(UploadReceiverTest, StreamIsCountedWhileItIsAttached) {
  Stream silent = Begin();
  EXPECT_EQ(streams_.Count("/Upload"), 0);
  Stream stream = BeginAttached();
  EXPECT_EQ(streams_.Count("/Upload"), 1);
  stream.receiver->Ended();
  Settle(*session_);
  EXPECT_EQ(streams_.Count("/Upload"), 0);
  silent.receiver->Ended();
}

TEST_F(UploadReceiverTest, StreamAtTheLimitIsRefusedAndTheAttachedOneStays) {
  Stream stream = BeginAttached();
  const UploadRecord other = OpenUpload("u2", "n2");
  const auto session = Session(other);
  ASSERT_TRUE(session->Reopen(other, kPeer).ok());
  Stream second = Begin(session);
  Deliver(second, Start(other));
  Settle(*session);
  EXPECT_EQ(second.connection->end_reason(), "TOO_MANY_STREAMS_OF_CALLER");
  EXPECT_TRUE(RetryAfterOf(*second.connection->end()).has_value());
  EXPECT_EQ(stream.connection->end(), std::nullopt);
  second.receiver->Ended();
  Settle(*session);
  EXPECT_FALSE(session->attached());
  EXPECT_TRUE(session_->attached());
  EXPECT_EQ(streams_.Count("/Upload"), 1);
}

// The end of the earlier stream is not noticed: its connection was lost.
TEST_F(UploadReceiverTest, NextStreamOfAnUploadReplacesTheEarlierOneAtTheLimit) {
  Stream lost = BeginAttached();
  Stream second = BeginAttached();
  EXPECT_EQ(lost.connection->end_reason(), "TAKEN_OVER");
  EXPECT_EQ(second.connection->end(), std::nullopt);
  EXPECT_EQ(streams_.Count("/Upload"), 1);
  lost.receiver->Ended();
  Settle(*session_);
  EXPECT_TRUE(session_->attached());
  EXPECT_EQ(streams_.Count("/Upload"), 1);
}

TEST_F(UploadReceiverTest, LaterOpenReleasesTheTicketOfALostStream) {
  Stream lost = BeginAttached();
  EXPECT_TRUE(session_->strand().Post([this] {
    upload_ = OpenUpload();
    EXPECT_TRUE(session_->Reopen(upload_, kPeer).ok());
  }));
  Settle(*session_);
  EXPECT_EQ(streams_.Count("/Upload"), 0);
  BeginAttached();
  EXPECT_EQ(streams_.Count("/Upload"), 1);
}

TEST_F(UploadReceiverTest, StalledStreamIsNotCounted) {
  Stream stalled = BeginAttached();
  clock_.Advance(absl::Seconds(61));
  session_->EndStalledStream(absl::Seconds(60));
  EXPECT_EQ(stalled.connection->end_reason(), "UPLOAD_STALLED");
  EXPECT_EQ(streams_.Count("/Upload"), 0);
}

TEST_F(UploadReceiverTest, StreamThatEndsBeforeItsStartIsHandledIsNotAttached) {
  Stream stream = Begin();
  const auto release = HoldStrand();
  Deliver(stream, Start());
  stream.receiver->Ended();
  release->set_value();
  Settle(*session_);
  EXPECT_FALSE(session_->attached());
  EXPECT_EQ(streams_.Count("/Upload"), 0);
}

TEST_F(UploadReceiverTest, TakenOverStreamEnds) {
  Stream stream = BeginAttached();
  EXPECT_TRUE(session_->strand().Post([this] {
    upload_ = OpenUpload();
    EXPECT_TRUE(session_->Reopen(upload_, kPeer).ok());
  }));
  Settle(*session_);
  EXPECT_EQ(stream.connection->end_reason(), "TAKEN_OVER");
}

TEST_F(UploadReceiverTest, MessagesOutOfOrderEndTheStream) {
  const auto reason_of = [this](v1::UploadRequest first) {
    Stream stream = Begin();
    Deliver(stream, std::move(first));
    return stream.connection->end_reason();
  };
  EXPECT_EQ(reason_of(ChunkOf(0, "hello")), "INVALID_CHUNK");
  EXPECT_EQ(reason_of(Finish("hello")), "INVALID_CHUNK");
  EXPECT_EQ(reason_of({}), "INVALID_CHUNK");
  v1::UploadRequest unknown = Start();
  unknown.mutable_start()->set_upload_id("0123");
  EXPECT_EQ(reason_of(unknown), "UPLOAD_NOT_FOUND");
  Stream stream = BeginAttached();
  Deliver(stream, Start());
  EXPECT_EQ(stream.connection->end_reason(), "INVALID_CHUNK");
  stream.receiver->Ended();
  Settle(*session_);
}

TEST_F(UploadReceiverTest, ChunkAboveTheLimitEndsTheStream) {
  const std::string large(kChunkMaxLarge + 1, 'x');
  Stream stream = BeginAttached();
  Deliver(stream, ChunkOf(0, large));
  EXPECT_EQ(stream.connection->end_reason(), "CHUNK_TOO_LARGE");
  stream.receiver->Ended();
  Settle(*session_);
  // A chunk cannot be larger than it says by its encoding either.
  Stream second = BeginAttached();
  v1::UploadRequest encoded = ChunkOf(0, std::string(kEncodedChunkMax + 1, 'x'));
  encoded.mutable_chunk()->set_raw_size(10);
  Deliver(second, std::move(encoded));
  EXPECT_EQ(second.connection->end_reason(), "CHUNK_TOO_LARGE");
  second.receiver->Ended();
  Settle(*session_);
}

TEST_F(UploadReceiverTest, HalfCloseWithoutAFinishLeavesTheUploadOpen) {
  Stream silent = Begin();
  silent.receiver->HalfClosed();
  EXPECT_EQ(silent.connection->end_reason(), "NO_READABLE_MESSAGE");
  Stream stream = BeginAttached();
  Deliver(stream, ChunkOf(0, "hello"));
  Settle(*session_);
  stream.receiver->HalfClosed();
  stream.receiver->Ended();
  Settle(*session_);
  EXPECT_EQ(stream.connection->end_reason(), "NO_READABLE_MESSAGE");
  EXPECT_FALSE(session_->ended());
  EXPECT_EQ(*blobs_->ListStaged(), std::vector<std::string>{upload_.id});
}

TEST_F(UploadReceiverTest, DamagedChunkEndsTheStreamAlsoBeforeAHalfClose) {
  Stream stream = BeginAttached();
  const auto release = HoldStrand();
  v1::UploadRequest damaged = ChunkOf(0, "hello");
  damaged.mutable_chunk()->set_crc32c(1);
  Deliver(stream, std::move(damaged));
  stream.receiver->HalfClosed();
  release->set_value();
  Settle(*session_);
  EXPECT_EQ(stream.connection->end_reason(), "CRC_MISMATCH");
  EXPECT_EQ(budget_.left(), 10);
  stream.receiver->Ended();
  Settle(*session_);
}

}  // namespace
}  // namespace muster::testing
