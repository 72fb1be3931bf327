#include "services/agent/progress_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::ElementsAre;

TEST(ProgressJsonTest, SonobuoysFieldsAreParsedAndOthersIgnored) {
  const auto progress = ParseProgressJson(
      R"({"msg":"3 of 8","total":8,"completed":3,"failures":["a","b"],"errors":["c"],)"
      R"("skipped":7,"failed":1,"name":"other","node":"n9","timestamp":"now"})");
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(progress->message, "3 of 8");
  EXPECT_EQ(progress->total, 8);
  EXPECT_EQ(progress->completed, 3);
  EXPECT_THAT(progress->failures, ElementsAre("a", "b"));
  EXPECT_THAT(progress->errors, ElementsAre("c"));
}

TEST(ProgressJsonTest, AppendFormIsParsed) {
  const auto progress =
      ParseProgressJson(R"({"appendtotals":true,"appendcompleted":2,"appendfailing":["x"]})");
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_TRUE(progress->append_totals);
  EXPECT_EQ(progress->append_completed, 2);
  EXPECT_THAT(progress->append_failing, ElementsAre("x"));
}

TEST(ProgressJsonTest, MissingFieldsAreZeroAndNegativeOnesAreAccepted) {
  const auto nothing = ParseProgressJson(R"({"msg":null,"total":null,"failures":null})");
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_EQ(nothing->total, 0);
  EXPECT_EQ(ParseProgressJson(R"({"completed":-5})")->completed, -5);
}

TEST(ProgressJsonTest, BrokenUtf8IsReplaced) {
  const auto progress = ParseProgressJson("{\"msg\":\"a\xFF\"}");
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(progress->message, "a\xEF\xBF\xBD");
}

TEST(ProgressJsonTest, InvalidReportIsRefused) {
  for (const std::string bad :
       {"", "null", "[]", "5", "{", "{}x", R"({"total":"8"})", R"({"total":1.5})",
        R"({"total":99999999999999999999})", R"({"total":18446744073709551615})", R"({"msg":5})",
        R"({"failures":"a"})", R"({"failures":[1]})", R"({"appendtotals":1})"}) {
    EXPECT_EQ(ReasonOf(ParseProgressJson(bad).status()), "INVALID_PROGRESS") << bad;
  }
  EXPECT_FALSE(ParseProgressJson(std::string(1 << 20, '[')).ok());
}

}  // namespace
}  // namespace muster
