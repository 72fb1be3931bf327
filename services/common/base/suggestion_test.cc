#include "services/common/base/suggestion.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

TEST(SuggestionTest, NamesTheNearest) {
  const std::vector<std::string> known = {"driver", "plugin-name", "limits.threads", "job"};
  EXPECT_EQ(Suggestion("drivr", known), "; did you mean driver?");
  EXPECT_EQ(Suggestion("jop", known), "; did you mean job?");
  EXPECT_EQ(Suggestion("plugin_name", known), "; did you mean plugin-name?");
  EXPECT_EQ(Suggestion("threads", known), "; did you mean limits.threads?");
}

TEST(SuggestionTest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(Suggestion("colour", std::vector<std::string>{"driver"}), "");
  EXPECT_EQ(Suggestion("foo", std::vector<std::string>{"job"}), "");
  EXPECT_EQ(Suggestion("x", {}), "");
}

}  // namespace
}  // namespace muster
