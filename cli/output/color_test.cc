#include "cli/output/color.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::cli {
namespace {

TEST(ColorTest, KnownWordIsColoredAndAnyOtherStays) {
  EXPECT_EQ(Colored("failed", ColorOfWord("failed")), "\x1b[31mfailed\x1b[0m");
  EXPECT_EQ(Colored("running", ColorOfWord("running")), "running");
  EXPECT_EQ(Colored("", Color::kBad), "");
}

TEST(ColorTest, ChoiceOfTheUserDecidesBeforeTheTerminal) {
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "xterm", 1);
  EXPECT_TRUE(WantsColor("auto", true));
  EXPECT_FALSE(WantsColor("auto", false));
  EXPECT_TRUE(WantsColor("always", false));
  EXPECT_FALSE(WantsColor("never", true));
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(WantsColor("auto", true));
  ::setenv("TERM", "xterm", 1);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(WantsColor("auto", true));
  EXPECT_TRUE(WantsColor("always", true));
}

}  // namespace
}  // namespace muster::cli
