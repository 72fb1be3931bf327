#include "cli/output/results_report.h"

#include <gtest/gtest.h>

#include <sstream>

namespace muster::cli {
namespace {

ResultItem Leaf(const std::string& name, std::string_view status) {
  return {.name = name, .status = std::string(status)};
}

ResultItem Example() {
  ResultItem node{.name = "n1", .meta = {{kMetaType, std::string(kTypeNode)}}};
  node.items = {Leaf("boots", kPassed), Leaf("[It] sings", kFailed), Leaf("swims", kSkipped),
                Leaf("runs", kTimeout)};
  ResultItem root{.name = "e2e", .meta = {{kMetaType, std::string(kTypeSummary)}}};
  root.items = {node};
  RollUp(root);
  return root;
}

TEST(ResultsReportTest, TextHasCountsAndFailedItems) {
  EXPECT_EQ(ReportText("e2e", "", Example()),
            "Plugin: e2e\nStatus: failed\nTotal: 4\nPassed: 1\nFailed: 2\nSkipped: 1\n"
            "\nFailed:\n  n1: sings\n  n1: runs\n");
  const ResultItem passed = Leaf("all", kPassed);
  EXPECT_EQ(ReportText("e2e", "n1", passed),
            "Plugin: e2e\nNode: n1\nStatus: passed\nTotal: 1\nPassed: 1\nFailed: 0\nSkipped: 0\n");
  ResultItem own{.name = "e2e"};
  own.items = {Leaf("a", "blue"), Leaf("b", kPassed)};
  RollUp(own);
  EXPECT_EQ(ReportText("e2e", "", own),
            "Plugin: e2e\nStatus: blue: 1, passed: 1\nTotal: 2\nPassed: 1\nFailed: 0\nSkipped: 0\n"
            "blue: 1\n");
}

// The name of an error is its text.
TEST(ResultsReportTest, LinesOfAnErrorBecomeSentences) {
  ResultItem node{.name = "n2", .meta = {{kMetaType, std::string(kTypeNode)}}};
  node.items = {Leaf("NO_TOOL: no tool\nInstall it.", kFailed)};
  ResultItem root{.name = "logs", .items = {node}};
  RollUp(root);
  EXPECT_NE(ReportText("logs", "", root).find("\n  n2: NO_TOOL: no tool. Install it.\n"),
            std::string::npos);
  EXPECT_NE(ReportText("logs", "n2", root).find("\n  NO_TOOL: no tool. Install it.\n"),
            std::string::npos);
  std::ostringstream out;
  WriteDetails(out, "logs", root);
  EXPECT_NE(out.str().find(R"("name":"NO_TOOL: no tool. Install it.")"), std::string::npos);
}

TEST(ResultsReportTest, JsonHasCountsAndFailedItems) {
  EXPECT_EQ(ReportJson("e2e", "n1", Example()).dump(),
            R"({"plugin":"e2e","node":"n1","status":"failed","total":4,"passed":1,"failed":2,)"
            R"("skipped":1,"counts":{"failed":1,"passed":1,"skipped":1,"timeout":1},)"
            R"("failures":[{"node":"n1","name":"sings"},{"node":"n1","name":"runs"}],)"
            R"("failed_not_listed":0})");
}

TEST(ResultsReportTest, FailuresInTheJsonOfAPluginNameTheirNodes) {
  ResultItem root{.name = "logs"};
  for (const char* name : {"n1", "n2"}) {
    ResultItem node{.name = name, .meta = {{kMetaType, std::string(kTypeNode)}}};
    node.items = {Leaf("NO_TOOL: no tool", kFailed)};
    root.items.push_back(std::move(node));
  }
  RollUp(root);
  EXPECT_EQ(ReportJson("logs", "", root)["failures"].dump(),
            R"([{"node":"n1","name":"NO_TOOL: no tool"},{"node":"n2","name":"NO_TOOL: no tool"}])");
}

TEST(ResultsReportTest, DetailsHaveOneLinePerLeaf) {
  std::ostringstream out;
  WriteDetails(out, "e2e", Example());
  EXPECT_EQ(out.str(),
            R"({"plugin":"e2e","node":"n1","name":"boots","status":"passed","meta":{}})"
            "\n"
            R"({"plugin":"e2e","node":"n1","name":"[It] sings","status":"failed","meta":{}})"
            "\n"
            R"({"plugin":"e2e","node":"n1","name":"swims","status":"skipped","meta":{}})"
            "\n"
            R"({"plugin":"e2e","node":"n1","name":"runs","status":"timeout","meta":{}})"
            "\n");
}

}  // namespace
}  // namespace muster::cli
