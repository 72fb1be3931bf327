#include "services/status/board/text_budget.h"

#include <gtest/gtest.h>

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
