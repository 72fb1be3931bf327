#include "services/common/rpc/message_meter.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

// Returns a message whose prefix declares `size`.
std::string Prefix(uint32_t size) {
  return {'\0', static_cast<char>(size >> 24), static_cast<char>(size >> 16),
          static_cast<char>(size >> 8), static_cast<char>(size)};
}

TEST(MessageMeterTest, WholeMessagesAreNotCountedWhereverTheyAreCut) {
  const std::string messages = Prefix(0) + Prefix(3) + "abc" + Prefix(300) + std::string(300, 'x');
  for (const size_t piece : {1, 2, 5, 7, 1000}) {
    MessageMeter meter;
    meter.Begin(1);
    for (size_t at = 0; at < messages.size(); at += piece) {
      EXPECT_TRUE(meter.Read(1, std::string_view(messages).substr(at, piece)));
    }
    EXPECT_EQ(meter.unfinished(), 0u) << piece;
  }
}

TEST(MessageMeterTest, UnfinishedBytesOfAllStreamsAreCountedUntilTheirEnd) {
  MessageMeter meter;
  for (const uint32_t stream : {1, 3}) {
    meter.Begin(stream);
    EXPECT_TRUE(meter.Read(stream, Prefix(10) + "abc"));
  }
  EXPECT_EQ(meter.unfinished(), 16u);
  EXPECT_TRUE(meter.Read(1, "defghij"));
  EXPECT_EQ(meter.unfinished(), 8u);
  meter.End(3);
  EXPECT_EQ(meter.unfinished(), 0u);
}

TEST(MessageMeterTest, MessageOfAnyDeclaredLengthIsBounded) {
  MessageMeter meter;
  meter.Begin(1);
  EXPECT_TRUE(meter.Read(1, Prefix(0xffffffff)));
  const std::string mebibyte(size_t{1} << 20, 'x');
  for (int i = 1; i < 32; ++i) ASSERT_TRUE(meter.Read(1, mebibyte)) << i;
  EXPECT_FALSE(meter.Read(1, mebibyte));
}

TEST(MessageMeterTest, MessageAboveTheLimitIsReportedWhenItsLengthArrives) {
  MessageMeter meter(10);
  meter.Begin(1);
  meter.Begin(3);
  EXPECT_TRUE(meter.Read(3, Prefix(10) + "abc"));
  EXPECT_TRUE(meter.Read(1, Prefix(1) + "a" + Prefix(11).substr(0, 4)));
  EXPECT_TRUE(meter.TakeTooLarge().empty());
  EXPECT_TRUE(meter.Read(1, Prefix(11).substr(4) + "abc"));
  const auto too_large = meter.TakeTooLarge();
  ASSERT_EQ(too_large.size(), 1u);
  EXPECT_EQ(too_large[0].stream, 1u);
  EXPECT_EQ(too_large[0].bytes, 11u);
  EXPECT_EQ(meter.unfinished(), 8u) << "of the other stream";
  EXPECT_TRUE(meter.Read(1, Prefix(11)));
  EXPECT_TRUE(meter.TakeTooLarge().empty()) << "the call was reported";
}

// A client that has not yet learned of the end of its call sends on.
TEST(MessageMeterTest, DataAfterTheEndOfAStreamIsIgnored) {
  MessageMeter meter;
  EXPECT_TRUE(meter.Read(1, Prefix(10)));
  meter.Begin(1);
  EXPECT_TRUE(meter.Read(1, Prefix(10)));
  meter.End(1);
  EXPECT_TRUE(meter.Read(1, Prefix(10)));
  meter.End(1);
  EXPECT_EQ(meter.unfinished(), 0u);
}

}  // namespace
}  // namespace muster
