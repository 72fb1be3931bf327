#include "services/common/rpc/frame_meter.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "services/common/rpc/testing/raw_http2_client.h"

namespace muster {
namespace {

using testing::FrameType;
using testing::Http2Frame;
using testing::kEndHeaders;
using testing::kEndStream;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

class FrameMeterTest : public ::testing::Test {
 protected:
  FrameMeterTest() { EXPECT_EQ(meter_->Read(kPreface, now_), ""); }

  // Reads the frame until there is too much; returns the number of frames before that, at most
  // `most`.
  int Repeat(const std::string& frame, int most) {
    for (int read = 0; read < most; ++read) {
      if (!meter_->Read(frame, now_).empty()) return read;
    }
    return most;
  }

  std::unique_ptr<FrameMeter> meter_ = std::make_unique<FrameMeter>();
  absl::Duration now_ = absl::Hours(1);
};

TEST_F(FrameMeterTest, HeaderBlockIsBoundedByItsBytesAndItsFrames) {
  const std::string kilobyte(1024, 'x');
  EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kHeaders, 0, 1, kilobyte), now_), "");
  EXPECT_EQ(Repeat(Http2Frame(FrameType::kContinuation, 0, 1, ""), 100), kMaxContinuations);
  FrameMeter other;
  EXPECT_EQ(other.Read(kPreface, now_), "");
  EXPECT_EQ(other.Read(Http2Frame(FrameType::kHeaders, 0, 1, std::string(16'384, 'x')), now_), "");
  EXPECT_EQ(other.Read(Http2Frame(FrameType::kContinuation, 0, 1, std::string(16'384, 'x')), now_),
            "");
  EXPECT_EQ(other.Read(Http2Frame(FrameType::kContinuation, 0, 1, "x"), now_),
            "header bytes of one call");
}

TEST_F(FrameMeterTest, CallsOfAnyNumberAreNoFlood) {
  const std::string data(100, 'x');
  for (uint32_t stream = 1; stream < 100'000; stream += 2) {
    const std::string call = Http2Frame(FrameType::kHeaders, 0, stream, std::string(9'000, 'x')) +
                             Http2Frame(FrameType::kContinuation, kEndHeaders, stream, data) +
                             Http2Frame(FrameType::kData, 0, stream, std::string(kSmallData, 'x')) +
                             Http2Frame(FrameType::kData, kEndStream, stream, "");
    ASSERT_EQ(meter_->Read(call, now_), "") << stream;
  }
  EXPECT_EQ(meter_->TakeOpened(), 50'000);
}

// gRPC ignores the reserved bit of a number, and skips the headers of an even one.
TEST_F(FrameMeterTest, NumbersOfStreamsAreThoseThatGrpcReads) {
  const std::string begun("\0\0\0\0\x64half", 9);
  for (const uint32_t number : {0x80000001u, 0x7ffffffeu, 3u}) {
    EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kHeaders, kEndHeaders, number, "header"), now_),
              "");
  }
  EXPECT_EQ(meter_->TakeOpened(), 2);
  for (const uint32_t number : {1u, 0x80000003u, 0x7ffffffeu}) {
    EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kData, 0, number, begun), now_), "");
  }
  EXPECT_EQ(meter_->unfinished(), 18u);
}

TEST_F(FrameMeterTest, HeadersThatBeginNoCallAreBounded) {
  EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kHeaders, kEndHeaders, 1, "header"), now_), "");
  EXPECT_EQ(Repeat(Http2Frame(FrameType::kHeaders, kEndHeaders, 1, "trailer"), 2'000),
            kMaxControlFramesPerSecond);
  meter_ = std::make_unique<FrameMeter>();
  EXPECT_EQ(meter_->Read(kPreface, now_), "");
  EXPECT_EQ(Repeat(Http2Frame(FrameType::kHeaders, kEndHeaders, 4, "header"), 2'000),
            kMaxControlFramesPerSecond);
}

// gRPC has the same limit, but not while it ignores new streams.
TEST_F(FrameMeterTest, CallsThatDoNotEndAreBounded) {
  size_t open = 0;
  while (open < 2 * kMaxStreams) {
    const auto number = static_cast<uint32_t>(2 * open + 1);
    if (!meter_->Read(Http2Frame(FrameType::kHeaders, kEndHeaders, number, "header"), now_)
             .empty()) {
      break;
    }
    ++open;
  }
  EXPECT_EQ(open, kMaxStreams);
}

TEST_F(FrameMeterTest, CallsThatBeginOrAreResetAreTakenOnce) {
  const std::string bytes = Http2Frame(FrameType::kHeaders, kEndHeaders, 1, "header") +
                            Http2Frame(FrameType::kHeaders, kEndHeaders, 3, "header") +
                            Http2Frame(FrameType::kRstStream, 0, 1, "1234");
  EXPECT_EQ(meter_->Read(bytes, now_), "");
  EXPECT_EQ(meter_->TakeOpened(), 2);
  EXPECT_EQ(meter_->TakeReset(), 1);
  EXPECT_EQ(meter_->TakeOpened() + meter_->TakeReset(), 0);
}

TEST_F(FrameMeterTest, FramesWithoutDataAreBoundedInEachSecond) {
  const struct {
    std::string frame;
    int limit;
  } kCases[] = {
      {Http2Frame(FrameType::kSettings, 0, 0, ""), kMaxSettingsPerSecond},
      {Http2Frame(FrameType::kSettings, 0, 0, std::string(60, '\0')), kMaxSettingsPerSecond / 2},
      {Http2Frame(FrameType::kPing, 0, 0, "12345678"), kMaxPingsPerSecond},
      {Http2Frame(FrameType::kRstStream, 0, 1, "1234"), kMaxResetsPerSecond},
      {Http2Frame(FrameType::kData, 0, 1, ""), kMaxControlFramesPerSecond},
      {Http2Frame(FrameType::kPriority, 0, 1, "12345"), kMaxControlFramesPerSecond},
      {Http2Frame(FrameType{200}, 0, 1, "unknown"), kMaxControlFramesPerSecond},
      {Http2Frame(FrameType::kData, 0, 1, "x"), kMaxSmallDataFramesPerSecond},
      {Http2Frame(FrameType::kData, 0, 1, std::string(kSmallData - 1, 'x')),
       kMaxSmallDataFramesPerSecond},
      {Http2Frame(FrameType::kWindowUpdate, 0, 0, "1234"), kMaxWindowUpdatesPerSecond},
  };
  for (const auto& one : kCases) {
    now_ += absl::Seconds(1);
    EXPECT_EQ(Repeat(one.frame, one.limit), one.limit);
    now_ += absl::Seconds(1);
    EXPECT_EQ(Repeat(one.frame, 200'000), one.limit) << "in the next second";
    meter_ = std::make_unique<FrameMeter>();
    EXPECT_EQ(meter_->Read(kPreface, now_), "");
  }
}

TEST_F(FrameMeterTest, MessagesAreUnfinishedUntilTheirStreamIsResetOrEnded) {
  const std::string begun("\0\0\0\0\x64half", 9);
  for (const uint32_t stream : {1, 3, 5, 7}) {
    EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kHeaders, kEndHeaders, stream, "header"), now_),
              "");
    EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kData, 0, stream, begun), now_), "");
  }
  EXPECT_EQ(meter_->unfinished(), 36u);
  EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kData, kEndStream, 5, "end"), now_), "");
  EXPECT_EQ(meter_->unfinished(), 27u);
  EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kData, kEndStream, 7, ""), now_), "");
  EXPECT_EQ(meter_->unfinished(), 18u);
  EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kRstStream, 0, 1, "1234"), now_), "");
  EXPECT_EQ(meter_->unfinished(), 9u);
  meter_->EndStream(3);
  EXPECT_EQ(meter_->unfinished(), 0u);
  EXPECT_EQ(meter_->Read(Http2Frame(FrameType::kData, 0, 3, begun), now_), "");
  EXPECT_EQ(meter_->unfinished(), 0u) << "of a call that has ended";
}

TEST_F(FrameMeterTest, FramesAreFoundWhereverTheBytesAreCut) {
  std::string bytes = Http2Frame(FrameType::kHeaders, kEndHeaders, 1, "header") +
                      Http2Frame(FrameType::kData, 0, 1, std::string(300, '\4'));
  for (int i = 0; i < kMaxSettingsPerSecond; ++i) {
    bytes += Http2Frame(FrameType::kSettings, 0, 0, "123456");
  }
  for (const size_t piece : {1, 2, 7, 9, 10, 1000}) {
    FrameMeter meter;
    EXPECT_EQ(meter.Read(kPreface, now_), "");
    for (size_t at = 0; at < bytes.size(); at += piece) {
      ASSERT_EQ(meter.Read(std::string_view(bytes).substr(at, piece), now_), "") << piece;
    }
    EXPECT_EQ(meter.Read(Http2Frame(FrameType::kSettings, 0, 0, ""), now_), "settings") << piece;
  }
}

TEST_F(FrameMeterTest, BytesOfAServerAreNotCounted) {
  FrameMeter meter;
  const std::string settings = Http2Frame(FrameType::kSettings, 0, 0, "");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(meter.Read(settings, now_), "");
}

}  // namespace
}  // namespace muster
