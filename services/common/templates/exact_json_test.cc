#include "services/common/templates/exact_json.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

std::string Again(const std::string& text) {
  const auto parsed = ParseExactJson(text);
  EXPECT_EQ(parsed.fault, JsonFault::kNone) << text;
  return ExactJsonText(parsed.value);
}

TEST(ExactJsonTest, NumbersKeepTheirText) {
  for (const std::string text :
       {"9007199254740993", "18446744073709551615", "-9223372036854775808",
        "123456789012345678901234567890", "-123456789012345678901234567890", "0.10", "1.0", "1e3",
        "1E+3", "0.12345678901234567890123", "1e-400", "-0.0", "5"}) {
    EXPECT_EQ(Again(text), text);
    EXPECT_EQ(Again("{\"a\":[" + text + ",{\"b\":" + text + "}]}"),
              "{\"a\":[" + text + ",{\"b\":" + text + "}]}");
  }
}

TEST(ExactJsonTest, OtherValuesAreThoseOfTheParser) {
  const std::string text = R"j({"a":[true,null,"\u00e9\n",[],{}],"b":{"c":1}})j";
  EXPECT_EQ(ParseExactJson(text).value, Json::parse(text));
  EXPECT_EQ(Again(text), Json::parse(text).dump());
  EXPECT_EQ(ExactJsonText(ParseExactJson<OrderedJson>(R"j({"b":1,"a":1.10})j").value),
            R"j({"b":1,"a":1.10})j");
}

TEST(ExactJsonTest, IndentedTextIsThatOfTheLibrary) {
  const Json json = Json::parse(R"j({"a":[1,{"b":[]}],"c":"d"})j");
  EXPECT_EQ(ExactJsonText(json, 2), json.dump(2));
}

TEST(ExactJsonTest, TextThatIsNoJsonIsAFault) {
  for (const std::string text : {"", "1 2", "{", "{\"a\":}", "nan", "01", "1e999", "'a'"}) {
    EXPECT_EQ(ParseExactJson(text).fault, JsonFault::kNotJson) << text;
    EXPECT_TRUE(ParseExactJson(text).value.is_null()) << text;
  }
}

TEST(ExactJsonTest, NameThatOccursTwiceIsAFault) {
  for (const std::string text :
       {R"j({"a":1,"a":1})j", R"j({"a":1,"\u0061":2})j", R"j([{"b":{"a":[],"c":0,"a":{}}}])j"}) {
    EXPECT_EQ(ParseExactJson(text).fault, JsonFault::kTwice) << text;
    EXPECT_EQ(ParseExactJson<OrderedJson>(text).fault, JsonFault::kTwice) << text;
    EXPECT_EQ(ParseExactJson(text + "x").fault, JsonFault::kNotJson) << text;
  }
  EXPECT_EQ(Again(R"j([{"a":1},{"a":{"a":2}}])j"), R"j([{"a":1},{"a":{"a":2}}])j");
}

TEST(ExactJsonTest, LevelsAreLimited) {
  const auto nested = [](int levels) {
    return std::string(levels, '[') + "1" + std::string(levels, ']');
  };
  EXPECT_EQ(Again(nested(kMaxJsonDepth)), nested(kMaxJsonDepth));
  EXPECT_EQ(ParseExactJson(nested(kMaxJsonDepth + 1)).fault, JsonFault::kTooDeep);
  EXPECT_EQ(ParseExactJson("{\"a\":" + nested(100'000) + ",\"b\":[]}").fault, JsonFault::kTooDeep);
  EXPECT_EQ(ParseExactJson(std::string(1'000'000, '[')).fault, JsonFault::kNotJson);
}

TEST(ExactJsonTest, DoublesReplaceExactNumbersForChecks) {
  EXPECT_EQ(WithDoubles(ParseExactJson(R"j({"a":[0.10,123456789012345678901234567890]})j").value),
            Json::parse(R"j({"a":[0.1,1.2345678901234568e29]})j"));
}

}  // namespace
}  // namespace muster
