#include "services/common/templates/json_schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

JsonSchema Schema(const std::string& text, const std::string& definitions = "null") {
  auto schema = JsonSchema::Parse(Json::parse(text), Json::parse(definitions));
  EXPECT_TRUE(schema.ok()) << schema.status();
  return schema.ok() ? *std::move(schema) : *JsonSchema::Parse(true, nullptr);
}

std::string Refusal(const std::string& text, const std::string& definitions = "null") {
  const auto schema = JsonSchema::Parse(Json::parse(text), Json::parse(definitions));
  EXPECT_EQ(ReasonOf(schema.status()), "INVALID_SCHEMA");
  return std::string(schema.status().message());
}

std::string Faults(const JsonSchema& schema, const std::string& value) {
  return absl::StrJoin(schema.Validate(Json::parse(value)), "\n");
}

TEST(JsonSchemaTest, FaultsNameTheirPlaces) {
  const JsonSchema schema = Schema(R"j({
    "type": "object",
    "required": ["region"],
    "additionalProperties": false,
    "properties": {
      "region": {"type": "string", "enum": ["eu", "us"]},
      "count": {"type": "integer", "minimum": 1, "maximum": 9},
      "names": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}}
    }})j");
  EXPECT_EQ(Faults(schema, R"j({"region": "eu", "count": 3, "names": ["a", "b"]})j"), "");
  EXPECT_THAT(Faults(schema, "{}"), HasSubstr("region"));
  EXPECT_THAT(Faults(schema, R"j({"region": "mars"})j"), HasSubstr("/region: "));
  EXPECT_THAT(Faults(schema, R"j({"region": "eu", "count": 10})j"), HasSubstr("/count: "));
  EXPECT_THAT(Faults(schema, R"j({"region": "eu", "count": 1.5})j"), HasSubstr("/count: "));
  EXPECT_THAT(Faults(schema, R"j({"region": "eu", "names": ["a", "B"]})j"),
              HasSubstr("/names/1: \"B\" does not match the pattern ^[a-z]+$"));
  EXPECT_THAT(Faults(schema, R"j({"region": "eu", "more": 1})j"), HasSubstr("more"));
  EXPECT_THAT(Faults(schema, "[]"), Not(IsEmpty()));
}

TEST(JsonSchemaTest, SchemasThatAreTrueOrFalseAreApplied) {
  EXPECT_EQ(Faults(Schema("true"), "17"), "");
  EXPECT_NE(Faults(Schema("false"), "17"), "");
  EXPECT_NE(Faults(Schema(R"j({"properties": {"a": false}})j"), R"j({"a": 1})j"), "");
  EXPECT_EQ(Faults(Schema(R"j({"properties": {"a": true}})j"), R"j({"a": 1})j"), "");
}

TEST(JsonSchemaTest, CombinationsAreApplied) {
  const JsonSchema schema =
      Schema(R"j({"anyOf": [{"type": "string", "maxLength": 2}, {"type": "integer"}]})j");
  EXPECT_EQ(Faults(schema, R"j("ab")j"), "");
  EXPECT_EQ(Faults(schema, "3"), "");
  EXPECT_NE(Faults(schema, R"j("abc")j"), "");
}

TEST(JsonSchemaTest, ReferencesStayInTheDocument) {
  const JsonSchema schema = Schema(R"j({"properties": {"a": {"$ref": "#/definitions/port"}}})j",
                                   R"j({"port": {"type": "integer", "maximum": 65535}})j");
  EXPECT_FALSE(schema.json().dump().find("$ref") != std::string::npos);
  EXPECT_NE(Faults(schema, R"j({"a": 70000})j"), "");
  for (const std::string reference : {"https://evil.example/schema.json", "file:///etc/passwd", "#",
                                      "#/properties/a", "other.json"}) {
    EXPECT_THAT(Refusal(absl::StrCat(R"j({"$ref": ")j", reference, "\"}")),
                HasSubstr("other documents are not read"));
  }
  EXPECT_THAT(Refusal(R"j({"$ref": "#/definitions/none"})j"), HasSubstr("no definition none"));
}

// Each definition uses the one before twice.
TEST(JsonSchemaTest, BombsAreRefused) {
  Json definitions = {{"d0", {{"type", "string"}}}};
  for (int i = 1; i < 14; ++i) {
    const Json one = {{"$ref", absl::StrCat("#/definitions/d", i - 1)}};
    definitions[absl::StrCat("d", i)] = {{"allOf", {one, one, one}}};
  }
  const auto bomb = JsonSchema::Parse({{"$ref", "#/definitions/d6"}}, definitions);
  EXPECT_THAT(std::string(bomb.status().message()), HasSubstr("more than"));
  EXPECT_THAT(
      Refusal(
          R"j({"$ref": "#/definitions/a"})j",
          R"j({"a": {"items": {"$ref": "#/definitions/b"}}, "b": {"not": {"$ref": "#/definitions/a"}}})j"),
      HasSubstr("contains itself"));
  std::string deep = "true";
  for (int i = 0; i < 40; ++i) deep = absl::StrCat(R"j({"items": )j", deep, "}");
  EXPECT_THAT(Refusal(deep), HasSubstr("more than 16 levels"));
  Json value = 1;
  for (int i = 0; i < 100; ++i) value = Json::array({value});
  EXPECT_THAT(Schema("true").Validate(value), ElementsAre(HasSubstr("more than 32 levels")));
}

TEST(JsonSchemaTest, PatternsTakeLinearTime) {
  const JsonSchema schema =
      Schema(R"j({"type": "string", "pattern": "^(a+)+$", "format": "date-time"})j");
  const std::string long_text(100'000, 'a');
  EXPECT_NE(Faults(schema, absl::StrCat("\"", long_text, "b\"")), "");
  EXPECT_EQ(Faults(schema, absl::StrCat("\"", long_text, "\"")), "");
  EXPECT_THAT(Refusal(R"j({"pattern": "(?=a)"})j"),
              HasSubstr("/pattern: not a pattern in the syntax of RE2"));
  EXPECT_THAT(Refusal(R"j({"pattern": "(a{1,1000}){1,1000}"})j"), HasSubstr("/pattern"));
  EXPECT_THAT(Refusal(R"j({"anyOf": [{"pattern": "a"}]})j"), HasSubstr("/anyOf/0/pattern"));
}

TEST(JsonSchemaTest, LargeSchemasAndValuesTakeBoundedTime) {
  EXPECT_THAT(Refusal(R"j({"multipleOf": 0})j"),
              HasSubstr("/multipleOf: must be a number above 0"));
  EXPECT_THAT(Refusal(R"j({"multipleOf": -1})j"), HasSubstr("above 0"));
  EXPECT_NE(Faults(Schema(R"j({"multipleOf": 2})j"), "4.5"), "");
  EXPECT_EQ(Faults(Schema(R"j({"multipleOf": 0.1})j"), "0.3"), "");
  const JsonSchema unique = Schema(R"j({"uniqueItems": true})j");
  EXPECT_THAT(unique.Validate(Json(std::vector<int>(19'000, 1))),
              ElementsAre("/: has equal elements"));
  Json distinct = Json::array();
  for (int i = 0; i < 19'000; ++i) distinct.push_back(i);
  EXPECT_THAT(unique.Validate(distinct), IsEmpty());
  Json all = Json::array();
  for (int i = 0; i < 900; ++i) all.push_back({{"items", {{"type", "string"}}}});
  const auto wide = JsonSchema::Parse({{"allOf", all}}, nullptr);
  ASSERT_TRUE(wide.ok()) << wide.status();
  EXPECT_THAT(wide->Validate(distinct), ElementsAre(HasSubstr("too large together")));
  Json values = Json::array();
  for (int i = 0; i < 10'000; ++i) values.push_back(i);
  Json properties;
  for (int i = 0; i < 1'900; ++i) properties[absl::StrCat(i)] = {{"$ref", "#/definitions/v"}};
  const auto copied = JsonSchema::Parse({{"properties", properties}}, {{"v", {{"enum", values}}}});
  EXPECT_THAT(std::string(copied.status().message()), HasSubstr("more than 256 KiB"));
}

TEST(JsonSchemaTest, NamesOfMembersAreNoKeywords) {
  EXPECT_NE(Faults(Schema(R"j({"dependencies": {"pattern": ["flags"]}})j"), R"j({"pattern": 1})j"),
            "");
  EXPECT_NE(Faults(Schema(R"j({"propertyNames": {"maxLength": 3}})j"), R"j({"toolong": 1})j"), "");
  EXPECT_THAT(Refusal(R"j({"type": "any"})j"), HasSubstr("/type: a type is"));
}

TEST(JsonSchemaTest, MistakesNameTheirPlaces) {
  EXPECT_THAT(Refusal(R"j({"properties": {"a": {"typ": "string"}}})j"),
              HasSubstr("/properties/a/typ: no such keyword"));
  EXPECT_THAT(Refusal(R"j({"patternProperties": {}})j"), HasSubstr("not supported"));
  EXPECT_THAT(Refusal(R"j({"items": [1]})j"), HasSubstr("/items"));
  EXPECT_THAT(Refusal(R"j({"properties": 3})j"), HasSubstr("/properties"));
  EXPECT_THAT(Refusal(R"j({"type": "text"})j"), HasSubstr("type"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("a schema is an object"));
}

}  // namespace
}  // namespace muster
