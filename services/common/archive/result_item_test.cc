#include "services/common/archive/result_item.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/common/archive/item_budget.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

ResultItem Leaf(std::string_view status, std::string name = "leaf") {
  return {.name = std::move(name), .status = std::string(status)};
}

std::string RolledUp(std::vector<ResultItem> items) {
  ResultItem root{.name = "root", .items = std::move(items)};
  RollUp(root);
  return root.status;
}

TEST(RollUpTest, FailedPrecedesUnknown) {
  EXPECT_EQ(RolledUp({Leaf(kPassed), Leaf(kSkipped)}), kPassed);
  EXPECT_EQ(RolledUp({Leaf(kPassed), Leaf(kUnknown)}), kUnknown);
  EXPECT_EQ(RolledUp({Leaf(kUnknown), Leaf(kFailed)}), kFailed);
  EXPECT_EQ(RolledUp({Leaf(kPassed), Leaf(kTimeout)}), kFailed);
  EXPECT_EQ(RolledUp({Leaf(kSkipped)}), kPassed);
}

TEST(RollUpTest, BranchWithoutLeavesIsUnknown) {
  EXPECT_EQ(RolledUp({}), kUnknown);
  EXPECT_EQ(RolledUp({Leaf("")}), kUnknown);
}

TEST(RollUpTest, StatusOfBranchesIsReplaced) {
  ResultItem branch{.name = "b", .status = "passed", .items = {Leaf(kFailed)}};
  ResultItem root{.name = "r", .items = {branch, Leaf(kPassed)}};
  RollUp(root);
  EXPECT_EQ(root.items[0].status, kFailed);
  EXPECT_EQ(root.status, kFailed);
}

TEST(RollUpTest, CustomStatusGivesCounts) {
  ResultItem one{.name = "n1", .items = {Leaf("red"), Leaf("blue"), Leaf("blue")}};
  ResultItem two{.name = "n2", .items = {Leaf(kPassed)}};
  ResultItem root{.name = "r", .items = {one, two, Leaf("red: 3, green: 1")}};
  RollUp(root);
  EXPECT_EQ(root.items[0].status, "blue: 2, red: 1");
  EXPECT_EQ(root.items[1].status, "passed: 1");
  EXPECT_EQ(root.status, "blue: 2, green: 1, passed: 1, red: 4");
}

TEST(SummarizeTest, LeavesAreCountedAndFailuresListed) {
  ResultItem root{.name = "p",
                  .items = {{.name = "n1",
                             .meta = {{kMetaType, std::string(kTypeNode)}},
                             .items = {Leaf(kFailed, "[It] does"), Leaf(kPassed)}},
                            Leaf(kTimeout, "timeout: n2"),
                            Leaf(kSkipped)}};
  RollUp(root);
  const ResultSummary summary = Summarize(root);
  EXPECT_EQ(summary.name, "p");
  EXPECT_EQ(summary.status, kFailed);
  EXPECT_EQ(summary.total(), 4);
  EXPECT_EQ(summary.count(kFailed), 1);
  EXPECT_EQ(summary.count(kTimeout), 1);
  EXPECT_EQ(summary.count("blue"), 0);
  EXPECT_THAT(summary.failed, ElementsAre(FailedLeaf{"n1", "does"}, FailedLeaf{"", "timeout: n2"}));
  const ResultSummary one = Summarize(root, 1);
  EXPECT_THAT(one.failed, SizeIs(1));
  EXPECT_EQ(one.failed_not_listed, 1);
}

TEST(VisitLeavesTest, LeavesAreVisitedWithTheirAncestors) {
  const ResultItem root{
      .name = "p", .items = {{.name = "n1", .items = {Leaf(kPassed, "a")}}, Leaf(kFailed, "b")}};
  std::vector<std::string> seen;
  VisitLeaves(root, [&seen](const std::string& above, const ResultItem& leaf) {
    seen.push_back(above + " " + leaf.name);
  });
  EXPECT_THAT(seen, ElementsAre("p|n1 a", "p b"));
}

TEST(FindItemTest, FirstItemIsFoundDepthFirst) {
  const ResultItem root{.name = "r", .items = {{.name = "a", .items = {Leaf(kPassed, "x")}}}};
  EXPECT_EQ(FindItem(root, "x"), &root.items[0].items[0]);
  EXPECT_EQ(FindItem(root, "r"), &root);
  EXPECT_EQ(FindItem(root, "y"), nullptr);
}

TEST(BoundedItemsTest, OmittedItemsAreCountedAndNoted) {
  ItemBudget budget(1000);
  BoundedItems items(budget);
  for (int i = 0; i < 100; ++i) items.Add(Leaf(i == 70 ? kFailed : kPassed));
  ResultItem root{.name = "r", .items = items.Finish()};
  RollUp(root);
  ASSERT_LT(root.items.size(), 10u);
  EXPECT_THAT(root.items.back().name, HasSubstr("more left out"));
  EXPECT_EQ(root.items.back().status, kFailed);
  EXPECT_EQ(root.status, kFailed);
  const ResultSummary summary = Summarize(root);
  EXPECT_THAT(summary.counts, ElementsAre(Pair("failed", 1), Pair("passed", 99)));
  EXPECT_EQ(summary.failed_not_listed, 1);
}

TEST(BoundedItemsTest, CustomStatusesAreLimited) {
  ItemBudget budget(0);
  BoundedItems items(budget);
  for (int i = 0; i < 1000; ++i) items.Add(Leaf("status" + std::to_string(i)));
  const std::vector<ResultItem> note = items.Finish();
  ASSERT_THAT(note, SizeIs(1));
  EXPECT_LT(note[0].meta.size(), 110u);
}

TEST(CutTextTest, CutTextStatesTheOmittedLength) {
  EXPECT_EQ(CutText("short", 5), "short");
  EXPECT_EQ(CutText("longer", 4), "long [2 more bytes: see the file]");
}

}  // namespace
}  // namespace muster
