#include "services/agent/jobs/argument_pattern.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ArgumentPatternTest, StarMatchesAnyCharactersOfOneArgument) {
  EXPECT_TRUE(FitsArgument("app-*", "app-"));
  EXPECT_TRUE(FitsArgument("app-*", "app-a/b c"));
  EXPECT_TRUE(FitsArgument("*a*b*", "xxaxxbaxb"));
  EXPECT_FALSE(FitsArgument("app-*", "xapp-1"));
  EXPECT_FALSE(FitsArgument("*.conf", "a.conf.bak"));
  EXPECT_TRUE(FitsArgument("", ""));
  EXPECT_FALSE(FitsArgument("", "x"));
  EXPECT_TRUE(FitsArgument("a\\*b", "a*b"));
  EXPECT_FALSE(FitsArgument("a\\*b", "axb"));
}

TEST(ArgumentPatternTest, StarInTheProgramDoesNotMatchASlash) {
  EXPECT_TRUE(FitsArgument("/opt/*/run", "/opt/app/run", true));
  EXPECT_FALSE(FitsArgument("/opt/*", "/opt/app/run", true));
  EXPECT_TRUE(FitsArgument("/opt/*", "/opt/app/run", false));
}

TEST(ArgumentPatternTest, ManyStarsMatchInLinearTime) {
  EXPECT_FALSE(FitsArgument("*a*a*a*a*a*a*a*a*a*b", std::string(50'000, 'a')));
}

}  // namespace
}  // namespace muster
