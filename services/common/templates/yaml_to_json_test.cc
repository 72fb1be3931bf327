#include "services/common/templates/yaml_to_json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/templates/exact_json.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string Refusal(const std::string& text) {
  const auto json = YamlToJson(text);
  EXPECT_EQ(ReasonOf(json.status()), "INVALID_DOCUMENT") << text;
  return std::string(json.status().message());
}

TEST(YamlToJsonTest, PlainScalarsHaveTypes) {
  const auto json = YamlToJson(
      "a: 12\nb: 1.5\nc: true\nd: ~\ne: text\nf: '12'\ng: \"true\"\nh: 0x10\ni: .inf\nj: -3\n"
      "k: 1e3\nl: [1, {m: n}]\no: 12345678901234567890123\np: |\n  12\nq: 1-2\nr: yes\n");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(WithDoubles(*json), (Json{{"a", 12},
                                      {"b", 1.5},
                                      {"c", true},
                                      {"d", nullptr},
                                      {"e", "text"},
                                      {"f", "12"},
                                      {"g", "true"},
                                      {"h", "0x10"},
                                      {"i", ".inf"},
                                      {"j", -3},
                                      {"k", 1000.0},
                                      {"l", {1, {{"m", "n"}}}},
                                      {"o", 12345678901234567890123.0},
                                      {"p", "12\n"},
                                      {"q", "1-2"},
                                      {"r", "yes"}}));
  EXPECT_THAT(ExactJsonText(*json), HasSubstr("\"o\":12345678901234567890123,"));
}

TEST(YamlToJsonTest, JsonIsReadToo) {
  const auto json = YamlToJson(R"({"a": [1, "1", null, {"b": false}]})");
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(*json, Json::parse(R"({"a": [1, "1", null, {"b": false}]})"));
}

TEST(YamlToJsonTest, BombsAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = absl::StrCat("*a", i - 1);
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [", last, ", ", last, ", ", last, ", ", last, ", ",
                    last, ", ", last, "]\n");
  }
  EXPECT_THAT(Refusal(bomb), HasSubstr("more than 20000 values"));
  EXPECT_THAT(Refusal(std::string(40, '[') + std::string(40, ']')),
              HasSubstr("more than 32 levels"));
  EXPECT_THAT(Refusal(std::string(300'000, ' ')), HasSubstr("256 KiB"));
}

TEST(YamlToJsonTest, MistakesNameTheirLines) {
  EXPECT_THAT(Refusal("a: 1\nb: 2\na: 3\n"), HasSubstr("line 3: the key a"));
  EXPECT_THAT(Refusal("a: [\n"), HasSubstr("not YAML"));
  EXPECT_THAT(Refusal("a: 1\n---\nb: 1\n"), HasSubstr("2 documents"));
  EXPECT_THAT(Refusal("{[a]: 1}"), HasSubstr("a key is not plain text"));
  EXPECT_THAT(Refusal("a: \xff\n"), HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace muster
