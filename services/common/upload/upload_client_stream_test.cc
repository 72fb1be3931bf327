// The sender's stream of an upload, over real mutual TLS.
#include "services/common/upload/upload_client_stream.h"

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "muster/v1/results.pb.h"
#include "services/common/base/error.h"
#include "services/common/errors/results.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster {
namespace {

using testing::StreamServer;
using testing::UploadScript;

using ServerSide = ServerStream<v1::UploadResponse>;

constexpr int64_t kMiB = 1 << 20;
constexpr absl::Duration kSoon = absl::Milliseconds(50);

v1::UploadRequest Chunk(int64_t offset, int64_t size) {
  v1::UploadRequest request;
  request.mutable_chunk()->set_offset(offset);
  request.mutable_chunk()->set_raw_size(size);
  request.mutable_chunk()->set_data(std::string(static_cast<size_t>(size), 'x'));
  return request;
}

v1::UploadRequest Finish(int64_t size) {
  v1::UploadRequest request;
  request.mutable_finish()->set_size(size);
  return request;
}

v1::UploadResponse Ack(int64_t written) {
  v1::UploadResponse response;
  response.mutable_ack()->set_written(written);
  return response;
}

v1::UploadResponse Committed(int64_t size) {
  v1::UploadResponse response;
  response.mutable_committed()->set_size(size);
  return response;
}

class UploadClientStreamTest : public ::testing::Test {
 protected:
  // The server acknowledges each chunk, and commits after `finish`.
  UploadClientStreamTest() {
    script_.resource = Resource::Pair("0123456789abcdef", "facts", "n1");
    script_.on_start = [](ServerSide& stream) { stream.ReadNext(); };
    script_.on_message = [](ServerSide& stream, const v1::UploadRequest& request) {
      if (request.has_finish()) return stream.SendAndEnd(Committed(request.finish().size()));
      stream.Send(Ack(request.chunk().offset() + request.chunk().raw_size()));
      stream.ReadNext();
    };
  }

  std::unique_ptr<UploadClientStream> Start(absl::Duration stall_limit = kUploadStallLimit) {
    ServerStreamOptions options;
    options.max_queued = 100;
    server_.Serve(script_, options);
    return std::make_unique<UploadClientStream>(server_.ConnectNode("n1"), 0, stop_.get_token(),
                                                stall_limit);
  }

  UploadScript script_;
  StreamServer server_;
  std::stop_source stop_;
};

TEST_F(UploadClientStreamTest, ChunksAreAcknowledgedAndTheEndIsReturned) {
  const auto stream = Start();
  for (int64_t end = kMiB; end <= 8 * kMiB; end += kMiB) {
    ASSERT_TRUE(stream->AwaitWindow(end, 2 * kMiB).ok());
    ASSERT_TRUE(stream->Send(Chunk(end - kMiB, kMiB), false).ok());
  }
  ASSERT_TRUE(stream->Send(Finish(8 * kMiB), true).ok());
  const auto end = stream->AwaitEnd();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->committed().size(), 8 * kMiB);
  EXPECT_EQ(stream->acknowledged(), 8 * kMiB);
}

TEST_F(UploadClientStreamTest, WindowOfUnacknowledgedBytesIsKept) {
  // The last chunk can arrive after the end of this test.
  const auto acked = std::make_shared<std::atomic<int64_t>>(0);
  script_.on_message = [acked](ServerSide& stream, const v1::UploadRequest& request) {
    *acked = request.chunk().offset() + request.chunk().raw_size();
    stream.Send(Ack(acked->load()));
    stream.ReadNext();
  };
  const auto stream = Start();
  for (int64_t end = kMiB; end <= 8 * kMiB; end += kMiB) {
    ASSERT_TRUE(stream->AwaitWindow(end, kMiB).ok());
    EXPECT_EQ(acked->load(), end - kMiB) << "room before the acknowledgement";
    ASSERT_TRUE(stream->Send(Chunk(end - kMiB, kMiB), false).ok());
  }
}

TEST_F(UploadClientStreamTest, ServerThatReadsNothingStallsAMessage) {
  script_.on_start = [](ServerSide&) {};
  const auto stream = Start(kSoon);
  absl::Status sent;
  for (int64_t offset = 0; sent.ok() && offset < 64 * kMiB; offset += kMiB) {
    sent = stream->Send(Chunk(offset, kMiB), false);
  }
  EXPECT_EQ(ReasonOf(sent), "NO_PROGRESS") << sent;
}

TEST_F(UploadClientStreamTest, ServerThatAcknowledgesNothingStallsTheUpload) {
  script_.on_message = [](ServerSide& stream, const v1::UploadRequest&) { stream.ReadNext(); };
  const auto stream = Start(kSoon);
  ASSERT_TRUE(stream->Send(Chunk(0, 100), false).ok());
  const absl::Status room = stream->AwaitWindow(200, 100);
  EXPECT_EQ(ReasonOf(room), "NO_PROGRESS") << room;
  EXPECT_EQ(stream->acknowledged(), 0);
}

TEST_F(UploadClientStreamTest, ServerThatEndsEarlyEndsEachWaitWithItsError) {
  script_.on_message = [](ServerSide& stream, const v1::UploadRequest&) {
    stream.End(errors::UploadNotFound("u1"));
  };
  const auto stream = Start();
  ASSERT_TRUE(stream->Send(Chunk(0, 100), false).ok());
  EXPECT_EQ(ReasonOf(stream->AwaitWindow(200, 100)), "UPLOAD_NOT_FOUND");
  EXPECT_EQ(ReasonOf(stream->Send(Chunk(100, 100), false)), "UPLOAD_NOT_FOUND");
  EXPECT_EQ(ReasonOf(stream->AwaitWindow(100, 100)), "UPLOAD_NOT_FOUND") << "despite enough room";
  EXPECT_EQ(ReasonOf(stream->AwaitEnd().status()), "UPLOAD_NOT_FOUND");
}

TEST_F(UploadClientStreamTest, EndWithoutACommitIsAnError) {
  script_.on_message = [](ServerSide& stream, const v1::UploadRequest&) {
    stream.End(absl::OkStatus());
  };
  const auto stream = Start();
  ASSERT_TRUE(stream->Send(Finish(0), true).ok());
  const auto end = stream->AwaitEnd();
  EXPECT_EQ(ReasonOf(end.status()), "STREAM_BROKEN") << end.status();
}

TEST_F(UploadClientStreamTest, StopEndsAWaitAndTheStream) {
  script_.on_message = [this](ServerSide&, const v1::UploadRequest&) { stop_.request_stop(); };
  auto stream = Start();
  ASSERT_TRUE(stream->Send(Chunk(0, 100), false).ok());
  EXPECT_EQ(ReasonOf(stream->AwaitWindow(200, 100)), "INTERRUPTED");
  EXPECT_EQ(ReasonOf(stream->Send(Chunk(100, 100), false)), "INTERRUPTED");
  stream.reset();
  const auto end = script_.ended.Take();
  ASSERT_TRUE(end.has_value()) << "the server still has the stream";
  EXPECT_EQ(end->by, EndedBy::kPeer);
}

TEST_F(UploadClientStreamTest, DestructorCancelsAMessageThatIsBeingSent) {
  script_.on_start = [](ServerSide&) {};
  auto stream = Start();
  ASSERT_TRUE(stream->Send(Chunk(0, 8 * kMiB), false).ok());
  ASSERT_TRUE(script_.started.Take().has_value());
  stream.reset();
  EXPECT_TRUE(script_.ended.Take().has_value());
}

TEST_F(UploadClientStreamTest, LostConnectionEndsAWait) {
  script_.on_message = [](ServerSide&, const v1::UploadRequest&) {};
  const auto stream = Start();
  ASSERT_TRUE(stream->Send(Chunk(0, 100), false).ok());
  ASSERT_TRUE(script_.started.Take().has_value());
  std::jthread stopper([this] { server_.Stop(); });
  const absl::Status room = stream->AwaitWindow(200, 100);
  EXPECT_TRUE(absl::IsUnavailable(room) || absl::IsCancelled(room)) << room;
}

}  // namespace
}  // namespace muster
