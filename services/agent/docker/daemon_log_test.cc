#include "services/agent/docker/daemon_log.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr size_t kPiece = size_t{16} << 10;

DaemonLogBytes BytesOf(const std::string& output) {
  DaemonLogBytes bytes;
  bytes.Add(output);
  return bytes;
}

TEST(DaemonLogBytesTest, BreakOfALineOfWholePiecesIsDropped) {
  const std::string piece(kPiece, 'x');
  const std::string output = "a\n\n" + piece + "\n" + piece + piece + "\nb\n" + piece + "c\n";
  const std::string log = "a\n\n" + piece + piece + piece + "b\n" + piece + "c\n";
  EXPECT_EQ(BytesOf(output).bytes(), static_cast<int64_t>(log.size()));
  EXPECT_EQ(BytesOf(output).crc(), Crc32c(log));
  DaemonLogBytes bytes;
  for (size_t at = 0; at < output.size(); at += 7'001) bytes.Add(output.substr(at, 7'001));
  EXPECT_EQ(bytes.crc(), Crc32c(log));
}

TEST(ReceivedBytesTest, BytesAfterTheReceivedOnesAreNew) {
  ReceivedBytes received(BytesOf("abc\n"));
  EXPECT_TRUE(received.missing());
  EXPECT_EQ(received.Skip("ab"), "");
  EXPECT_EQ(received.Skip("c\nd"), "d");
  EXPECT_EQ(received.Skip("e"), "e");
  EXPECT_FALSE(received.missing());
  EXPECT_FALSE(ReceivedBytes().missing());
}

TEST(ReceivedBytesTest, OtherBeginningOfTheLogIsMissing) {
  ReceivedBytes received(BytesOf("abc\n"));
  EXPECT_EQ(received.Skip("abd\nmore"), "more");
  EXPECT_TRUE(received.missing());
}

TEST(DaemonLogSizeTest, LogIsFullWhenItsLastFileMayBeInUse) {
  constexpr int64_t kFile = int64_t{1} << 20;
  DaemonLogSize size;
  size.Add(std::string((kDaemonLogFiles - 2) * kFile, 'x'));
  EXPECT_FALSE(size.full(kFile));
  size.Add(std::string(kFile, 'x'));
  EXPECT_TRUE(size.full(kFile));
}

TEST(DaemonLogSizeTest, ShortLinesTakeMoreSpaceThanTheirBytes) {
  constexpr int64_t kFile = int64_t{1} << 20;
  DaemonLogSize size;
  size.Add(std::string(kFile / 4, '\n'));
  EXPECT_FALSE(size.full(kFile));
  size.Add(std::string(kFile / 4, '\n'));
  EXPECT_TRUE(size.full(kFile));
}

}  // namespace
}  // namespace muster
