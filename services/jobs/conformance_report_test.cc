#include "services/jobs/conformance_report.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

ConformanceReport Report(const std::string& probes) {
  const auto report =
      ReadConformanceReport(R"({"version": 1, "status": "pass", "probes": [)" + probes + "]}");
  EXPECT_TRUE(report.has_value()) << probes;
  return report.value_or(ConformanceReport());
}

TEST(ConformanceReportTest, OtherJsonIsNoReport) {
  for (const char* text :
       {"", "7", "[]", "{}", R"({"version": 2, "probes": []})", R"({"version": 1})",
        R"({"version": 1, "probes": {}})", R"({"version": 1, "probes": [7]})",
        R"({"version": 1, "probes": [{"id": ""}]})", R"({"version": 1, "probes": [{"id": 7}]})"}) {
    EXPECT_FALSE(ReadConformanceReport(text).has_value()) << text;
  }
  const auto empty =
      ReadConformanceReport(R"({"version": 1, "status": 7, "probes": [{"id": "a"}]})");
  ASSERT_TRUE(empty.has_value());
  EXPECT_EQ(empty->status, "");
  EXPECT_EQ(empty->probes.at("a").status, "");
}

TEST(ConformanceReportTest, OnlyTheTypeOfThisNameIsMeant) {
  EXPECT_TRUE(IsConformanceType("conformance@1.0.0"));
  EXPECT_FALSE(IsConformanceType("conformance"));
  EXPECT_FALSE(IsConformanceType("conformance-of-mine@1.0.0"));
}

TEST(ConformanceReportTest, WhatTheBaselinePassesMustPassOrNotApply) {
  const ConformanceReport baseline = Report(
      R"({"id": "a", "status": "pass"}, {"id": "b", "status": "pass"}, {"id": "c", "status": "pass"},
         {"id": "d", "status": "pass"}, {"id": "e", "status": "fail", "required": true})");
  const auto differences = CompareReports(
      baseline,
      Report(
          R"({"id": "a", "status": "pass"}, {"id": "b", "status": "warn", "measured": "m", "text": "t"},
             {"id": "c", "status": "skip"}, {"id": "e", "status": "fail", "required": true})"));
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].probe(), "b");
  EXPECT_EQ(differences[0].baseline_status(), "pass");
  EXPECT_EQ(differences[0].status(), "warn");
  EXPECT_EQ(differences[0].measured(), "m");
  EXPECT_EQ(differences[0].text(), "t");
  EXPECT_EQ(differences[1].probe(), "d");
  EXPECT_EQ(differences[1].status(), "");
}

TEST(ConformanceReportTest, NewRequiredProbeMustNotFail) {
  const auto differences = CompareReports(
      Report(R"({"id": "a", "status": "pass"})"),
      Report(R"({"id": "a", "status": "pass"}, {"id": "b", "status": "fail", "required": true},
                {"id": "c", "status": "warn"}, {"id": "d", "status": "pass", "required": true})"));
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].probe(), "b");
  EXPECT_EQ(differences[0].baseline_status(), "");
}

TEST(ConformanceReportTest, DifferencesAndTheirTextAreBounded) {
  std::string baseline;
  for (int i = 0; i < 150; ++i) {
    baseline +=
        (i > 0 ? "," : "") + (R"({"id": "p)" + std::to_string(i) + R"(", "status": "pass"})");
  }
  EXPECT_EQ(CompareReports(Report(baseline), Report("")).size(), 100u);
  const auto report = Report(R"({"id": "a", "measured": ")" + std::string(5'000, 'x') + "\"}");
  EXPECT_EQ(report.probes.at("a").measured.size(), 1'024u);
}

}  // namespace
}  // namespace muster
