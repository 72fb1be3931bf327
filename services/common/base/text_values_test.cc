#include "services/common/base/text_values.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(HostPortTest, ReadsWhatItPrints) {
  for (const char* text :
       {"127.0.0.1:7443", "node-1.example:0", "[::1]:65535", "[fe80::1%eth0]:1"}) {
    const auto address = ParseHostPort(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->ToString(), text);
  }
  EXPECT_EQ(ParseHostPort("[::1]:80")->host, "::1");
}

TEST(HostPortTest, RefusesAllElse) {
  for (const char* text :
       {"", "host", ":80", "host:", "host:65536", "host:-1", "host:8 0", "::1:80", "[]:80", "[::1]",
        "a b:80", "http://h:80", "user@h:80", "h:99999999999"}) {
    EXPECT_FALSE(ParseHostPort(text)) << text;
  }
}

TEST(DurationTest, ReadsUnitsAndRefusesTheEndless) {
  EXPECT_EQ(ParseDuration("30s"), absl::Seconds(30));
  EXPECT_EQ(ParseDuration("1h30m"), absl::Minutes(90));
  for (const char* text : {"", "30", "inf", "-inf", "5 m", "m"}) {
    EXPECT_FALSE(ParseDuration(text)) << text;
  }
}

TEST(ByteSizeTest, ReadsWhatItPrints) {
  for (const char* text : {"0", "1000", "64KiB", "4MiB", "1GiB", "2TiB", "1025KiB"}) {
    ASSERT_TRUE(ParseByteSize(text)) << text;
    EXPECT_EQ(FormatByteSize(*ParseByteSize(text)), text);
  }
  EXPECT_EQ(FormatByteSize(65536), "64KiB");
  EXPECT_EQ(ParseByteSize("16777215TiB"), uint64_t{16777215} << 40);
}

TEST(ByteSizeTest, RefusesAllElse) {
  for (const char* text : {"", "KiB", "64KB", "64 KiB", "-1", "1.5MiB", "16777216TiB", "0x10",
                           "18446744073709551616"}) {
    EXPECT_FALSE(ParseByteSize(text)) << text;
  }
}

TEST(AgeTest, WholeDaysAreWrittenAsDays) {
  EXPECT_EQ(FormatAge(absl::Hours(720)), "30d");
  EXPECT_EQ(FormatAge(absl::Hours(25)), "25h");
  EXPECT_EQ(FormatAge(absl::ZeroDuration()), "0");
}

}  // namespace
}  // namespace muster
