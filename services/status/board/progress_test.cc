#include "services/status/board/progress.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

v1::ReportProgressRequest Append(int64_t completed, int failing, bool totals) {
  v1::ReportProgressRequest report;
  report.set_append_completed(completed);
  for (int i = 0; i < failing; ++i) report.add_append_failing("test");
  report.set_append_totals(totals);
  return report;
}

TEST(ProgressTest, AppendedReportsAddUpAndAPlainReportReplacesThem) {
  v1::Progress progress;
  const absl::Time now = absl::FromUnixSeconds(100);
  ApplyProgress(Append(3, 1, true), now, &progress);
  EXPECT_EQ(progress.total(), 4);
  EXPECT_EQ(progress.completed(), 3);
  ApplyProgress(Append(4, 0, true), now, &progress);
  EXPECT_EQ(progress.total(), 8);
  EXPECT_EQ(progress.completed(), 7);
  ApplyProgress(Append(5, 1, true), now, &progress);
  EXPECT_EQ(progress.total(), 14);
  EXPECT_EQ(progress.completed(), 12);
  EXPECT_EQ(progress.failures_size(), 2);
  v1::ReportProgressRequest plain;
  plain.set_total(20);
  plain.set_completed(1);
  plain.set_message("again");
  ApplyProgress(plain, now, &progress);
  EXPECT_EQ(progress.total(), 20);
  EXPECT_EQ(progress.completed(), 1);
  EXPECT_EQ(progress.failures_size(), 0);
  EXPECT_EQ(progress.message(), "again");
  EXPECT_EQ(progress.time().seconds(), 100);
}

TEST(ProgressTest, LongTextsAndListsAreTruncated) {
  v1::Progress progress;
  v1::ReportProgressRequest report;
  report.set_message(std::string(1 << 20, 'x'));
  for (int i = 0; i < 1000; ++i) report.add_failures(std::to_string(i));
  ApplyProgress(report, absl::UnixEpoch(), &progress);
  EXPECT_EQ(progress.message().size(), 4096u);
  EXPECT_EQ(progress.failures_size(), 100);
  EXPECT_EQ(progress.failures(99), "999");
  EXPECT_EQ(progress.omitted_failures(), 900);
  ApplyProgress(Append(0, 30, false), absl::UnixEpoch(), &progress);
  EXPECT_EQ(progress.failures_size(), 100);
  EXPECT_EQ(progress.failures(0), "930");
  EXPECT_EQ(progress.omitted_failures(), 930);
}

TEST(ProgressTest, TotalIsNeverLessThanCompleted) {
  v1::Progress progress;
  v1::ReportProgressRequest report;
  report.set_total(8);
  report.set_completed(9);
  ApplyProgress(report, absl::UnixEpoch(), &progress);
  EXPECT_EQ(progress.total(), 9);
  ApplyProgress(Append(2, 0, false), absl::UnixEpoch(), &progress);
  EXPECT_EQ(progress.total(), 11);
  report.set_total(0);
  ApplyProgress(report, absl::UnixEpoch(), &progress);
  EXPECT_EQ(progress.total(), 0) << "the total is not known";
}

}  // namespace
}  // namespace muster
