// The memory of a server whose peer sends frames that a correct client never would, and the calls
// of another client at the same time.
#include <grpcpp/client_context.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/shares.grpc.pb.h"
#include "services/common/rpc/status.h"
#include "services/common/rpc/testing/raw_http2_client.h"
#include "services/common/rpc/testing/stream_fixture.h"

namespace muster::testing {
namespace {

constexpr char kOpenShare[] = "/muster.v1.ShareService/OpenShare";

// The memory that one peer may make the process take: the streams of its connection, the buffers of
// gRPC, and what the allocator keeps. Sanitizers need more.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int64_t kPeerMemory = int64_t{2} << 30;
#else
constexpr int64_t kPeerMemory = int64_t{128} << 20;
#endif

int64_t ResidentBytes() {
  std::ifstream in("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  in >> size >> resident;
  return resident * getpagesize();
}

// Calls OpenShare in a loop, one call at a time.
class OtherClient {
 public:
  explicit OtherClient(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::ShareService::NewStub(channel)) {
    EXPECT_EQ(CallOnce(), absl::OkStatus());
    thread_ = std::thread([this] {
      while (!stop_) {
        if (const absl::Status status = CallOnce(); !status.ok()) {
          ADD_FAILURE() << status;
          return;
        }
        ++calls_;
      }
    });
  }

  ~OtherClient() {
    stop_ = true;
    thread_.join();
    EXPECT_EQ(CallOnce(), absl::OkStatus());
  }

  int64_t calls() const { return calls_; }

 private:
  absl::Status CallOnce() {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    v1::OpenShareResponse response;
    return FromGrpc(stub_->OpenShare(&context, {}, &response));
  }

  const std::unique_ptr<v1::ShareService::Stub> stub_;
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> calls_ = 0;
  std::thread thread_;
};

enum class Peer { kNode, kStranger };

class ServerFloodTest : public ::testing::TestWithParam<Peer> {
 protected:
  ServerFloodTest() : server_(64, Options()) {
    server_.open_share = [this](auto* context, const auto* request, auto* response) {
      return Answer(server_.runtime(), context, kOpenShare, {*request, response},
                    [](Call& call) { return call.Authorize(Resource::Own()); });
    };
    other_ = std::make_unique<OtherClient>(server_.ConnectNode("other"));
    before_ = ResidentBytes();
  }

  ~ServerFloodTest() override {
    const int64_t calls = other_->calls();
    while (other_->calls() == calls && !HasFailure()) absl::SleepFor(absl::Milliseconds(1));
    other_.reset();
    server_.Stop();
  }

  RawHttp2Client Connect() const {
    if (GetParam() == Peer::kStranger) return {server_.open_port(), "", ""};
    const auto credential = server_.IssueNode("flood");
    return {server_.port(), credential.chain, credential.key};
  }

  // Sends parts until the server closes the connection, in pieces of about 64 KiB. Fails at the
  // bound of the memory.
  void Flood(RawHttp2Client& client, int parts, const std::function<std::string()>& next,
             bool drain = true) {
    std::string piece;
    for (int i = 0; i < parts; ++i) {
      piece += next();
      if (piece.size() < 64 * 1024 && i + 1 < parts) continue;
      if (!client.Send(piece) || (drain && !client.Drain())) break;
      piece.clear();
      if (!WithinBound()) return;
    }
    WithinBound();
  }

  bool WithinBound() {
    most_ = std::max(most_, ResidentBytes() - before_);
    EXPECT_LT(most_, kPeerMemory);
    return most_ < kPeerMemory;
  }

  static RpcServerOptions Options() {
    RpcServerOptions options;
    options.open_listen = "127.0.0.1:0";
    return options;
  }

  StreamServer server_;
  std::unique_ptr<OtherClient> other_;
  int64_t before_ = 0;
  int64_t most_ = 0;
};

TEST_P(ServerFloodTest, StreamsBeforeTheAcknowledgementOfTheSettingsAreBounded) {
  RawHttp2Client client = Connect();
  Flood(client, 200'000, [&] { return client.NextHeaders(kOpenShare); });
  EXPECT_TRUE(client.AwaitClosed());
}

TEST_P(ServerFloodTest, StreamsAfterTheAcknowledgementOfTheSettingsAreBounded) {
  RawHttp2Client client = Connect();
  ASSERT_TRUE(client.AckSettings());
  Flood(client, 200'000, [&] { return client.NextHeaders(kOpenShare); });
  EXPECT_TRUE(client.AwaitClosed());
}

TEST_P(ServerFloodTest, StreamsThatAreResetAtOnceTakeBoundedMemory) {
  RawHttp2Client client = Connect();
  ASSERT_TRUE(client.AckSettings());
  Flood(client, 200'000, [&] {
    const std::string headers = client.NextHeaders(kOpenShare);
    return headers + Http2Frame(FrameType::kRstStream, 0, client.stream(), std::string(4, '\0'));
  });
  EXPECT_TRUE(client.AwaitClosed());
}

TEST_P(ServerFloodTest, EndlessHeadersTakeBoundedMemory) {
  RawHttp2Client client = Connect();
  ASSERT_TRUE(client.AckSettings());
  ASSERT_TRUE(client.Send(client.NextHeaders(kOpenShare, /*flags=*/0)));
  const std::string header = absl::StrCat(std::string("\0\1x\x7e", 4), std::string(126, 'v'));
  std::string block;
  for (int i = 0; i < 100; ++i) block += header;
  Flood(client, 10'000,
        [&] { return Http2Frame(FrameType::kContinuation, 0, client.stream(), block); });
  EXPECT_TRUE(client.AwaitClosed());
}

// Frames without data, of which each costs the server some work.
TEST_P(ServerFloodTest, FramesWithoutDataEndTheConnection) {
  for (const FrameType type : {FrameType::kContinuation, FrameType::kSettings, FrameType::kPriority,
                               FrameType::kRstStream, FrameType::kData}) {
    SCOPED_TRACE(static_cast<int>(type));
    RawHttp2Client client = Connect();
    ASSERT_TRUE(client.AckSettings());
    const uint8_t flags = type == FrameType::kContinuation ? 0 : kEndHeaders;
    ASSERT_TRUE(client.Send(client.NextHeaders(kOpenShare, flags)));
    const std::string payload = type == FrameType::kPriority    ? std::string(5, '\0')
                                : type == FrameType::kRstStream ? std::string(4, '\0')
                                                                : "";
    const uint32_t stream = type == FrameType::kSettings ? 0 : client.stream();
    Flood(client, 1'000'000, [&] { return Http2Frame(type, 0, stream, payload); });
    EXPECT_TRUE(client.AwaitClosed());
  }
}

TEST_P(ServerFloodTest, PingsWhoseAnswersAreNotReadTakeBoundedMemory) {
  RawHttp2Client client = Connect();
  Flood(
      client, 500'000, [&] { return Http2Frame(FrameType::kPing, 0, 0, "12345678"); },
      /*drain=*/false);
  EXPECT_TRUE(client.AwaitClosed());
}

TEST_P(ServerFloodTest, SettingsWhoseAnswersAreNotReadTakeBoundedMemory) {
  RawHttp2Client client = Connect();
  Flood(
      client, 500'000, [&] { return Http2Frame(FrameType::kSettings, 0, 0, ""); },
      /*drain=*/false);
}

TEST_P(ServerFloodTest, SmallDataFramesTakeBoundedMemory) {
  RawHttp2Client client = Connect();
  ASSERT_TRUE(client.AckSettings());
  // The prefix of a message of 60,000 bytes.
  const std::string prefix("\0\0\0\xea\x60", 5);
  std::string start;
  for (int i = 0; i < 30; ++i) {
    start += client.NextHeaders(kOpenShare);
    start += Http2Frame(FrameType::kData, 0, client.stream(), prefix);
  }
  ASSERT_TRUE(client.Send(start));
  uint32_t stream = 1;
  Flood(client, 1'000'000, [&] {
    stream = stream >= client.stream() ? 1 : stream + 2;
    return Http2Frame(FrameType::kData, 0, stream, "x");
  });
  EXPECT_TRUE(client.AwaitClosed());
}

TEST_P(ServerFloodTest, EmptyDataFramesTakeBoundedMemory) {
  RawHttp2Client client = Connect();
  ASSERT_TRUE(client.AckSettings());
  ASSERT_TRUE(client.Send(client.NextHeaders(kOpenShare)));
  Flood(client, 1'000'000, [&] { return Http2Frame(FrameType::kData, 0, client.stream(), ""); });
}

INSTANTIATE_TEST_SUITE_P(Peers, ServerFloodTest, ::testing::Values(Peer::kNode, Peer::kStranger),
                         [](const auto& info) {
                           return info.param == Peer::kNode ? "Node" : "Stranger";
                         });

}  // namespace
}  // namespace muster::testing
