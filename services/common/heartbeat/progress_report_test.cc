#include "services/common/heartbeat/progress_report.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(ProgressReportTest, NegativeAndHugeCountsAreRefused) {
  v1::ReportProgressRequest report;
  report.set_completed(-1);
  EXPECT_EQ(ReasonOf(CheckProgress(report)), "INVALID_PROGRESS");
  report.set_completed(int64_t{1} << 60);
  EXPECT_EQ(ReasonOf(CheckProgress(report)), "INVALID_PROGRESS");
  report.set_completed(5);
  EXPECT_TRUE(CheckProgress(report).ok());
  report.set_append_completed(-1);
  EXPECT_EQ(ReasonOf(CheckProgress(report)), "INVALID_PROGRESS");
}

TEST(ProgressReportTest, ReportWithAnAppendFieldHasTheAppendForm) {
  v1::ReportProgressRequest report;
  report.set_completed(5);
  report.add_failures("a");
  EXPECT_FALSE(IsAppend(report));
  report.add_append_failing("b");
  EXPECT_TRUE(IsAppend(report));
}

TEST(ProgressReportTest, LongTextsAreCutBetweenCharacters) {
  v1::ReportProgressRequest report;
  report.set_message(std::string(1 << 20, 'x'));
  report.add_failures(std::string(1023, 'x') + "ä");
  report.add_errors("short");
  CutProgress(&report);
  EXPECT_EQ(report.message().size(), 4096u);
  EXPECT_EQ(report.failures(0), std::string(1023, 'x'));
  EXPECT_EQ(report.errors(0), "short");
}

TEST(ProgressReportTest, NamesBeforeTheNewestAreOnlyCounted) {
  v1::ReportProgressRequest report;
  for (int i = 0; i < 1000; ++i) {
    report.add_failures(std::to_string(i));
    report.add_append_failing(std::to_string(i));
  }
  CutProgress(&report);
  for (const auto* names : {&report.failures(), &report.append_failing()}) {
    ASSERT_EQ(names->size(), 1000);
    EXPECT_EQ(names->Get(0), "");
    EXPECT_EQ(names->Get(899), "");
    EXPECT_EQ(names->Get(900), "900");
    EXPECT_EQ(names->Get(999), "999");
  }
}

}  // namespace
}  // namespace muster
