#include "services/status/board/text_budget.h"

#include <gtest/gtest.h>

#include <array>

namespace muster {
namespace {

TEST(TextBudgetTest, PairKeepsItsTextsWithoutRoomForMore) {
  TextBudget all(100);
  PluginTexts texts;
  EXPECT_EQ(texts.Resize(0, 60, all), 60u);
  EXPECT_EQ(texts.Resize(0, 50, all), 0u);
  EXPECT_EQ(texts.Resize(60, 101, all), 60u);
  EXPECT_EQ(texts.Resize(60, 40, all), 40u);
  EXPECT_EQ(texts.Resize(0, 60, all), 60u);
  EXPECT_EQ(all.used(), 100u);
}

TEST(TextBudgetTest, OnePluginLeavesRoomForOthers) {
  TextBudget all;
  PluginTexts greedy;
  EXPECT_EQ(greedy.Resize(0, kTextBytesOfPlugin, all), kTextBytesOfPlugin);
  EXPECT_EQ(greedy.Resize(0, 1, all), 0u);
  PluginTexts other;
  EXPECT_EQ(other.Resize(0, 1000, all), 1000u);
}

TEST(TextBudgetTest, OneRunLeavesRoomForOthers) {
  TextBudget all;
  TextBudget greedy(kTextBytesOfRun, all);
  std::array<PluginTexts, 3> plugins;
  EXPECT_EQ(plugins[0].Resize(0, kTextBytesOfPlugin, greedy), kTextBytesOfPlugin);
  EXPECT_EQ(plugins[1].Resize(0, kTextBytesOfPlugin, greedy), kTextBytesOfPlugin);
  EXPECT_EQ(plugins[2].Resize(0, 1, greedy), 0u);
  TextBudget other(kTextBytesOfRun, all);
  PluginTexts texts;
  EXPECT_EQ(texts.Resize(0, kTextBytesOfPlugin, other), kTextBytesOfPlugin);
  EXPECT_EQ(all.used(), 3 * kTextBytesOfPlugin);
}

TEST(TextBudgetTest, RunWithoutRoomInAllReservesNothing) {
  TextBudget all(100);
  TextBudget run(80, all);
  PluginTexts texts;
  EXPECT_EQ(texts.Resize(0, 80, run), 80u);
  TextBudget other(80, all);
  PluginTexts others;
  EXPECT_EQ(others.Resize(0, 21, other), 0u);
  EXPECT_EQ(other.used(), 0u);
  EXPECT_EQ(others.Resize(0, 20, other), 20u);
}

TEST(TextBudgetTest, EndOfAPluginReleasesItsTexts) {
  TextBudget all(100);
  {
    PluginTexts texts;
    EXPECT_EQ(texts.Resize(0, 100, all), 100u);
  }
  EXPECT_EQ(all.used(), 0u);
}

}  // namespace
}  // namespace muster
