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

TEST(DaemonLogBytesTest, PartOfALineIsNotStored) {
  const std::string piece(kPiece, 'x');
  EXPECT_EQ(BytesOf("ab\ncd").part(), "cd");
  EXPECT_EQ(BytesOf("ab\ncd").stored_bytes(), 3);
  EXPECT_EQ(BytesOf("ab\ncd").stored_crc(), Crc32c("ab\n"));
  EXPECT_EQ(BytesOf("ab\n").part(), "");
  EXPECT_EQ(BytesOf(piece).part(), "");
  EXPECT_EQ(BytesOf(piece + "\n").part(), "");
  EXPECT_EQ(BytesOf(piece + "\nc").part(), "c");
  EXPECT_EQ(BytesOf(piece + "\nc").stored_crc(), Crc32c(piece));
  EXPECT_EQ(BytesOf("a\n" + piece + piece + "bc").part(), "bc");
  DaemonLogBytes bytes = BytesOf("a\nb");
  bytes.Add("c");
  EXPECT_EQ(bytes.part(), "bc");
  bytes.Add(std::string(kPiece, 'y'));
  EXPECT_EQ(bytes.part(), "yy");
  EXPECT_EQ(bytes.stored_bytes(), 2 + static_cast<int64_t>(kPiece));
  bytes.Add("\nd");
  EXPECT_EQ(bytes.part(), "d");
  EXPECT_EQ(bytes.crc(), Crc32c("a\nbc" + std::string(kPiece, 'y') + "\nd"));
}

TEST(DaemonLogBytesTest, DroppedPartIsNotInTheLog) {
  DaemonLogBytes bytes = BytesOf(std::string(kPiece, 'x') + "part");
  bytes.DropPart();
  EXPECT_EQ(bytes.crc(), Crc32c(std::string(kPiece, 'x')));
  bytes.Add("\n");  // dropped by the daemon
  bytes.Add("next\n");
  EXPECT_EQ(bytes.crc(), Crc32c(std::string(kPiece, 'x') + "next\n"));
  EXPECT_EQ(bytes.bytes(), static_cast<int64_t>(kPiece) + 5);
}

TEST(ReceivedBytesTest, PartOfALineThatTheLogLacksIsNotSkipped) {
  ReceivedBytes lost(BytesOf("a\nsuper"));
  EXPECT_EQ(lost.Skip("a\n"), "");
  EXPECT_FALSE(lost.missing());
  EXPECT_EQ(lost.absent(), 5) << "the container may have ended with it";
  EXPECT_EQ(lost.Skip("su"), "");
  EXPECT_TRUE(lost.missing());
  EXPECT_FALSE(lost.DequeueLostPart());
  EXPECT_EQ(lost.Skip("m\n"), "sum\n");
  EXPECT_TRUE(lost.DequeueLostPart());
  EXPECT_FALSE(lost.DequeueLostPart());
  EXPECT_EQ(lost.Skip("next\n"), "next\n");
  EXPECT_FALSE(lost.missing());
  EXPECT_EQ(lost.absent(), 5);
  ReceivedBytes whole(BytesOf("a\nsuper"));
  EXPECT_EQ(whole.Skip("a\nsup"), "");
  EXPECT_EQ(whole.Skip("er\nnext"), "\nnext");
  EXPECT_FALSE(whole.missing());
  EXPECT_EQ(whole.absent(), 0);
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
