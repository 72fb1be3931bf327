#include "services/status/board/activity.h"

#include "gtest/gtest.h"

namespace muster {
namespace {

v1::Activity MakeActivity(v1::Phase phase, const std::string& message = "") {
  v1::Activity activity;
  activity.set_phase(phase);
  activity.set_message(message);
  return activity;
}

TEST(ActivityTest, FirstActivityWithoutAPhaseIsWorking) {
  Work work;
  EXPECT_TRUE(ApplyActivity(v1::Activity(), work));
  EXPECT_EQ(work.phase, v1::PHASE_WORKING);
}

TEST(ActivityTest, ActivityWithoutAPhaseKeepsThePhase) {
  Work work;
  ApplyActivity(MakeActivity(v1::PHASE_DELIVERING), work);
  EXPECT_FALSE(ApplyActivity(v1::Activity(), work));
  EXPECT_EQ(work.phase, v1::PHASE_DELIVERING);
}

TEST(ActivityTest, EqualActivityIsNoChange) {
  Work work;
  v1::Activity activity = MakeActivity(v1::PHASE_WAITING, "for the done file");
  activity.mutable_fault()->set_message("refused");
  EXPECT_TRUE(ApplyActivity(activity, work));
  EXPECT_FALSE(ApplyActivity(activity, work));
  activity.mutable_fault()->set_address("10.0.0.1:8443");
  EXPECT_TRUE(ApplyActivity(activity, work));
  activity.clear_fault();
  EXPECT_TRUE(ApplyActivity(activity, work));
  EXPECT_EQ(work.fault, nullptr);
}

TEST(ActivityTest, ActivityOfAnAbandonedPairIsAChange) {
  Work work;
  ApplyActivity(MakeActivity(v1::PHASE_WORKING), work);
  work.abandoned = true;
  EXPECT_TRUE(ApplyActivity(MakeActivity(v1::PHASE_WORKING), work));
  EXPECT_FALSE(work.abandoned);
}

TEST(ActivityTest, AgentWithAFaultOrInAnEarlyPhaseCannotWork) {
  Work work;
  ApplyActivity(MakeActivity(v1::PHASE_CHECKING), work);
  EXPECT_FALSE(CanWork(work));
  ApplyActivity(MakeActivity(v1::PHASE_BLOCKED), work);
  EXPECT_FALSE(CanWork(work));
  ApplyActivity(MakeActivity(v1::PHASE_WORKING), work);
  EXPECT_TRUE(CanWork(work));
  v1::Activity activity = MakeActivity(v1::PHASE_WORKING);
  activity.mutable_fault()->set_message("refused");
  ApplyActivity(activity, work);
  EXPECT_FALSE(CanWork(work));
}

TEST(ActivityTest, RepeatedReportIsNoMovement) {
  Work work;
  v1::ReportProgressRequest report;
  report.set_total(10);
  EXPECT_TRUE(ApplyReport(report, absl::UnixEpoch(), work)) << "the first report";
  work.motion.Moved(0, absl::Seconds(1));
  EXPECT_FALSE(ApplyReport(report, absl::UnixEpoch() + absl::Seconds(5), work));
  EXPECT_EQ(work.progress->time().seconds(), 5);
  report.set_completed(1);
  EXPECT_TRUE(ApplyReport(report, absl::UnixEpoch() + absl::Seconds(6), work));
}

}  // namespace
}  // namespace muster
