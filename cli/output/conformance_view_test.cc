#include "cli/output/conformance_view.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

v1::NodeConformance Node() {
  v1::NodeConformance node;
  node.set_node("n1");
  node.set_deployment("d1");
  node.set_type("conformance@1.0.0");
  node.set_status("fail");
  node.set_state(v1::CONFORMANCE_STATE_DIFFERENT);
  node.mutable_report_time()->set_seconds(1'000);
  node.set_report(
      R"({"version":1,"status":"fail","probes":[)"
      R"({"id":"limits.swap","area":"limits","status":"pass","measured":"none","expected":"none"},)"
      R"({"id":"identity.user","area":"identity","status":"fail","measured":"0:0","expected":"not root","text":"a <rule>"},)"
      R"({"id":"x","area":"y","status":"skip","text":"no"}]})");
  v1::ProbeDifference& difference = *node.add_differences();
  difference.set_probe("identity.user");
  difference.set_baseline_status("pass");
  difference.set_status("fail");
  difference.set_measured("0:0");
  difference.set_text("a \x1b[31m rule");
  return node;
}

TEST(ConformanceViewTest, FailedProbesComeFirst) {
  const std::string table = NodeConformanceTable(Node(), absl::FromUnixSeconds(2'000), 0);
  EXPECT_TRUE(absl::StrContains(table, "state       different\n")) << table;
  EXPECT_TRUE(absl::StrContains(table, "difference  identity.user: fail, 0:0: a ?[31m rule\n"))
      << table;
  EXPECT_LT(table.find("fail    identity.user"), table.find("pass    limits.swap")) << table;
}

TEST(ConformanceViewTest, NodesHaveTheirFirstDifference) {
  v1::NodeConformance other = Node();
  other.add_differences()->set_probe("limits.swap");
  v1::NodeConformance good;
  good.set_node("n2");
  good.set_state(v1::CONFORMANCE_STATE_CONFORMANT);
  good.set_status("pass");
  const std::string table = ConformanceTable({other, good}, absl::FromUnixSeconds(2'000), 0);
  EXPECT_TRUE(absl::StrContains(table, "(and 1 more)")) << table;
  EXPECT_TRUE(absl::StrContains(table, "n2    conformant  pass")) << table;
}

TEST(ConformanceViewTest, JsonHasTheReport) {
  const Json json = ToJson(Node());
  EXPECT_EQ(json["state"], "different");
  EXPECT_EQ(json["report"]["probes"][1]["id"], "identity.user");
  EXPECT_EQ(json["differences"][0]["baseline_status"], "pass");
  v1::NodeConformance damaged = Node();
  damaged.set_report("not JSON");
  EXPECT_TRUE(ToJson(damaged)["report"].is_null());
  EXPECT_FALSE(NodeConformanceTable(damaged, absl::Now(), 0).empty());
}

TEST(ConformanceViewTest, JUnitHasACaseForEachProbe) {
  const std::string xml = JUnitOf(Node());
  EXPECT_TRUE(absl::StrContains(
      xml, "<testsuite name=\"conformance of n1\" tests=\"3\" failures=\"1\" skipped=\"1\""))
      << xml;
  EXPECT_TRUE(absl::StrContains(
      xml,
      "<testcase classname=\"identity\" name=\"identity.user\"><failure type=\"fail\" "
      "message=\"expected not root\">0:0: a &lt;rule&gt;</failure></testcase>"))
      << xml;
  EXPECT_TRUE(absl::StrContains(xml, "<skipped message=\"no\"/>")) << xml;
}

}  // namespace
}  // namespace muster::cli
