#include "services/agent/docker/stream_frames.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

std::string Frame(char kind, std::string_view payload) {
  std::string frame(8, '\0');
  frame[0] = kind;
  for (int i = 0; i < 4; ++i) frame[4 + i] = static_cast<char>(payload.size() >> (24 - 8 * i));
  return frame.append(payload);
}

class StreamFramesTest : public ::testing::Test {
 protected:
  std::string out_;
  std::string err_;
  StreamFrames frames_{[this](ContainerStream stream, std::string_view data) {
    (stream == ContainerStream::kStdout ? out_ : err_).append(data);
  }};
};

TEST_F(StreamFramesTest, FramesThatAreCutAnywhereAreJoined) {
  const std::string large(70'000, 'x');
  const std::string bytes = Frame(1, "one\n") + Frame(2, "two") + Frame(1, "") + Frame(1, large) +
                            Frame(2, std::string("\0\r\xff", 3));
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{8}, size_t{9}, bytes.size()}) {
    out_.clear();
    err_.clear();
    for (size_t at = 0; at < bytes.size(); at += piece) {
      ASSERT_TRUE(frames_.Feed(std::string_view(bytes).substr(at, piece)).ok());
    }
    EXPECT_EQ(out_, "one\n" + large) << piece;
    EXPECT_EQ(err_, std::string("two\0\r\xff", 6)) << piece;
    EXPECT_TRUE(frames_.at_boundary());
  }
}

TEST_F(StreamFramesTest, PayloadIsPassedBeforeItsFrameIsComplete) {
  const std::string frame = Frame(1, "abcdef");
  ASSERT_TRUE(frames_.Feed(frame.substr(0, 11)).ok());
  EXPECT_EQ(out_, "abc");
  EXPECT_FALSE(frames_.at_boundary());
}

TEST_F(StreamFramesTest, OtherBytesAreDamaged) {
  for (const std::string& bytes : {std::string(8, '\4'), std::string("\1\1\0\0\0\0\0\1", 8)}) {
    StreamFrames frames([](ContainerStream, std::string_view) {});
    const absl::Status status = frames.Feed(bytes);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(ReasonOf(status), "CONTAINER_OUTPUT_DAMAGED");
  }
}

TEST_F(StreamFramesTest, ErrorOfTheDaemonIsNoOutput) {
  ASSERT_TRUE(frames_.Feed(Frame(1, "kept")).ok());
  const absl::Status status =
      frames_.Feed(Frame(3, "error from daemon in stream: " + std::string(10'000, 'e')));
  EXPECT_EQ(ReasonOf(status), "CONTAINER_OUTPUT_LOST");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("error from daemon in stream"));
  EXPECT_LT(status.message().size(), 6'000u);
  EXPECT_EQ(out_, "kept");
}

}  // namespace
}  // namespace muster
