#include "cli/output/format.h"

#include <gtest/gtest.h>

#include "services/common/base/error.h"

namespace muster::cli {
namespace {

TEST(HumanSizeTest, SizeHasThreeDigitsAndIsRoundedDown) {
  EXPECT_EQ(HumanSize(0), "0 B");
  EXPECT_EQ(HumanSize(1023), "1023 B");
  EXPECT_EQ(HumanSize(1024), "1 KiB");
  EXPECT_EQ(HumanSize(1536), "1.5 KiB");
  EXPECT_EQ(HumanSize(20 << 20), "20 MiB");
  EXPECT_EQ(HumanSize((int64_t{1} << 30) - 1), "1023 MiB");
  EXPECT_EQ(HumanSize(int64_t{5} << 40), "5 TiB");
  EXPECT_EQ(HumanSize(INT64_MAX), "7.9 EiB");
}

TEST(HumanDurationTest, DurationHasItsTwoLargestUnits) {
  EXPECT_EQ(HumanDuration(absl::Seconds(-5)), "0s");
  EXPECT_EQ(HumanDuration(absl::Seconds(59.9)), "59s");
  EXPECT_EQ(HumanDuration(absl::Seconds(185)), "3m 05s");
  EXPECT_EQ(HumanDuration(absl::Minutes(130)), "2h 10m");
  EXPECT_EQ(HumanDuration(absl::Hours(76)), "3d 04h");
  EXPECT_EQ(HumanDuration(absl::InfiniteDuration()), "forever");
}

TEST(HumanTimeTest, TimeOfAnotherDayHasItsDate) {
  const absl::TimeZone utc = absl::UTCTimeZone();
  const absl::Time now = absl::FromCivil(absl::CivilSecond(2026, 11, 21, 14, 30, 0), utc);
  EXPECT_EQ(HumanTime(now - absl::Minutes(1), now), "14:29:00 UTC");
  EXPECT_EQ(HumanTime(now - absl::Hours(24), now), "2026-11-20 14:30 UTC");
  EXPECT_EQ(HumanTime(absl::UnixEpoch(), now), "-");
}

TEST(WrapLinesTest, TextIsBrokenBetweenWordsAndNothingIsLost) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(WrapLines("no heartbeat since 16:09", 12), (Lines{"no heartbeat", "since 16:09"}));
  EXPECT_EQ(WrapLines("a 0123456789 b", 4), (Lines{"a", "0123", "4567", "89 b"}));
  EXPECT_EQ(WrapLines("\xc3\xa4\xc3\xa4\xc3\xa4", 2), (Lines{"\xc3\xa4\xc3\xa4", "\xc3\xa4"}));
  EXPECT_EQ(WrapLines("any length", 0), (Lines{"any length"}));
}

TEST(Rfc3339Test, TimeIsInUtcWithAFraction) {
  const absl::Time time =
      absl::FromCivil(absl::CivilSecond(2026, 11, 21, 14, 30, 0), absl::UTCTimeZone());
  EXPECT_EQ(Rfc3339(time), "2026-11-21T14:30:00Z");
  EXPECT_EQ(Rfc3339(time + absl::Milliseconds(250)), "2026-11-21T14:30:00.25Z");
  EXPECT_EQ(Rfc3339(absl::UnixEpoch()), "");
}

TEST(PercentTest, IncompletePartIsBelow100) {
  EXPECT_EQ(Percent(0, 0), 0);
  EXPECT_EQ(Percent(99999, 100000), 99);
  EXPECT_EQ(Percent(100000, 100000), 100);
}

TEST(JoinLinesTest, LinesBecomeSentences) {
  EXPECT_EQ(JoinLines("no journal; no output\nRun journald."),
            "no journal; no output. Run journald.");
  EXPECT_EQ(JoinLines("Failed:\n\nthe disk is full.\nFree space.\n"),
            "Failed: the disk is full. Free space.");
  EXPECT_EQ(JoinLines(""), "");
}

TEST(ClipTest, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(Clip("hostfacts", 9), "hostfacts");
  EXPECT_EQ(Clip("hostfacts", 8), "hostf...");
  EXPECT_EQ(Clip("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xc3\xa4", 4), "\xc3\xa4...");
  EXPECT_EQ(Clip("abc", 2), "..");
}

TEST(ClipTest, ChangesOfColorHaveNoWidth) {
  EXPECT_EQ(DisplayWidth("\x1b[31mfailed\x1b[0m"), 6);
  EXPECT_EQ(Clip("\x1b[31mfailed\x1b[0m", 6), "\x1b[31mfailed\x1b[0m");
  EXPECT_EQ(Clip("\x1b[31mfailed\x1b[0m", 5), "\x1b[31mfa\x1b[0m...");
}

TEST(DurationArgumentTest, DurationAsItIsPrintedIsRead) {
  EXPECT_EQ(DurationArgument("1d").value(), absl::Hours(24));
  EXPECT_EQ(DurationArgument("2d6h30m").value(), absl::Hours(54) + absl::Minutes(30));
  for (const absl::Duration duration :
       {absl::Seconds(42), absl::Seconds(185), absl::Minutes(130), absl::Hours(76)}) {
    EXPECT_EQ(DurationArgument(HumanDuration(duration)).value(), duration);
  }
}

TEST(DurationArgumentTest, NumberWithoutUnitFails) {
  EXPECT_EQ(DurationArgument("90s").value(), absl::Seconds(90));
  EXPECT_EQ(DurationArgument("1h30m").value(), absl::Minutes(90));
  for (const char* text : {"", "30", "m", "3x", "0s", "-3m", "3 m", "d", "1", "0d", "-1d", "1d-2h",
                           "1d d", "1.5d", " 1d", "99999999999d"}) {
    const absl::Status status = DurationArgument(text).status();
    EXPECT_EQ(ReasonOf(status), "INVALID_DURATION") << text;
    EXPECT_FALSE(NextStepOf(status).empty()) << text;
  }
}

}  // namespace
}  // namespace muster::cli
