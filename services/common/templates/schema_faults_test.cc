#include "services/common/templates/schema_faults.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/templates/exact_json.h"
#include "services/common/templates/json_schema.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// Returns the faults of a value named "v", a line each.
std::string Faults(const std::string& schema, const std::string& value) {
  const auto parsed = JsonSchema::Parse(Json::parse(schema), nullptr);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  if (!parsed.ok()) return "";
  return absl::StrJoin(parsed->Validate(ParseExactJson(value).value, "v"), "\n");
}

TEST(SchemaFaultsTest, TypeNamesTheValueAndTheDemand) {
  EXPECT_EQ(Faults(R"j({"type": "integer"})j", R"j("x")j"),
            "v: \"x\" is a string, and must be an integer");
  EXPECT_EQ(Faults(R"j({"type": ["string", "null", "array"]})j", "1.50"),
            "v: 1.50 is a number, and must be a string, null or an array");
  EXPECT_EQ(Faults(R"j({"type": "object"})j", "null"), "v: it is null, and must be an object");
  EXPECT_EQ(Faults(R"j({"type": "integer"})j", "123456789012345678901234567890"),
            "v: 123456789012345678901234567890 is an integer of more than 64 bits, and must be an "
            "integer");
  EXPECT_EQ(Faults(R"j({"type": "number"})j", "123456789012345678901234567890"), "");
}

TEST(SchemaFaultsTest, AllowedValuesAreListed) {
  EXPECT_EQ(Faults(R"j({"enum": ["eu", "us", 3]})j", R"j("mars")j"),
            "v: \"mars\" is not one of the allowed values: \"eu\", \"us\" or 3");
  EXPECT_EQ(Faults(R"j({"enum": [1,2,3,4,5,6,7,8,9,10,11,12]})j", "0"),
            "v: 0 is not one of the allowed values: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 or 2 others");
  EXPECT_EQ(Faults(R"j({"const": "eu"})j", "3"),
            "v: 3 is not \"eu\", the only value that is allowed");
}

TEST(SchemaFaultsTest, LimitsOfNumbersAreNamed) {
  EXPECT_EQ(Faults(R"j({"minimum": 1})j", "0"), "v: 0 is below the minimum, 1");
  EXPECT_EQ(Faults(R"j({"maximum": 9})j", "10"), "v: 10 is above the maximum, 9");
  EXPECT_EQ(Faults(R"j({"maximum": 1e3})j", "1000.10"), "v: 1000.10 is above the maximum, 1000.0");
  EXPECT_EQ(Faults(R"j({"exclusiveMinimum": 1})j", "1"), "v: 1 must be above 1");
  EXPECT_EQ(Faults(R"j({"exclusiveMaximum": 1})j", "1"), "v: 1 must be below 1");
  EXPECT_EQ(Faults(R"j({"multipleOf": 3})j", "7"), "v: 7 is not a multiple of 3");
}

TEST(SchemaFaultsTest, LengthsAreCountedInCharacters) {
  EXPECT_EQ(Faults(R"j({"minLength": 3})j", R"j("éé")j"),
            "v: \"éé\" has 2 characters, and at least 3 are required");
  EXPECT_EQ(Faults(R"j({"maxLength": 1})j", R"j("éé")j"),
            "v: \"éé\" has 2 characters, and at most 1 is allowed");
  EXPECT_EQ(Faults(R"j({"minItems": 2})j", "[1]"),
            "v: the array has 1 element, and at least 2 are required");
  EXPECT_EQ(Faults(R"j({"uniqueItems": true})j", "[1.0, 1.00]"), "v: has equal elements");
  EXPECT_EQ(Faults(R"j({"pattern": "^[a-z]+$"})j", R"j("B")j"),
            "v: \"B\" does not match the pattern ^[a-z]+$");
}

TEST(SchemaFaultsTest, MembersAndElementsHavePlaces) {
  const std::string schema = R"j({
    "type": "object", "required": ["region", "zone"], "additionalProperties": false,
    "properties": {
      "region": {"type": "string"}, "zone": {"type": "string"},
      "names": {"type": "array", "items": {"type": "string"}},
      "a/b": {"type": "object", "additionalProperties": {"type": "integer"}}
    }})j";
  EXPECT_EQ(Faults(schema, R"j({"zone": "a", "regoin": 1})j"),
            "v: the member \"regoin\" is not allowed; did you mean region?\n"
            "v: the member \"region\" is missing");
  EXPECT_EQ(
      Faults(schema, R"j({"region": "a", "zone": "b", "names": ["a", 2], "a/b": {"c": "d"}})j"),
      "v/a~1b/c: \"d\" is a string, and must be an integer\n"
      "v/names/1: 2 is an integer, and must be a string");
  EXPECT_EQ(Faults(R"j({"properties": {"a": false}})j", R"j({"a": 1})j"),
            "v/a: no value is allowed here");
}

TEST(SchemaFaultsTest, OtherKeywordsHaveTheWordsOfTheLibrary) {
  const std::string schema = R"j({"properties": {
    "a": {"type": "string"},
    "b": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "c": {"allOf": [{"minimum": 3}]}}})j";
  const std::string faults = Faults(schema, R"j({"a": 1, "b": 2, "c": 1})j");
  EXPECT_THAT(faults, HasSubstr("v/a: 1 is an integer, and must be a string\n"));
  EXPECT_THAT(faults, HasSubstr("v/c: 1 is below the minimum, 3\n"));
  EXPECT_THAT(faults, HasSubstr("v/b: "));
  EXPECT_EQ(faults.find("v/a: ", 1), std::string::npos) << faults;
  EXPECT_EQ(faults.find("v: "), std::string::npos) << faults;
}

TEST(SchemaFaultsTest, LongValuesAndLongListsAreCut) {
  const std::string fault = Faults(R"j({"type": "integer"})j", "\"" + std::string(500, 'a') + "\"");
  EXPECT_EQ(fault, absl::StrCat("v: \"", std::string(59, 'a'),
                                "... is a string, and must be an "
                                "integer"));
  Json many = Json::object();
  for (int i = 0; i < 1'000; ++i) many[absl::StrCat(std::string(2'000, 'a'), i)] = i;
  const auto schema = JsonSchema::Parse({{"additionalProperties", false}}, nullptr);
  ASSERT_TRUE(schema.ok());
  EXPECT_EQ(schema->Validate(many).size(), kMaxSchemaFaults);
}

TEST(SchemaFaultsTest, ValueWithoutANameBeginsWithASlash) {
  const auto schema = JsonSchema::Parse({{"maximum", 9}}, nullptr);
  ASSERT_TRUE(schema.ok());
  EXPECT_THAT(schema->Validate(10), ElementsAre("/: 10 is above the maximum, 9"));
}

}  // namespace
}  // namespace muster
