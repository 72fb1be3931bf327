#include "services/common/templates/schema_comparison.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

JsonSchema Schema(const std::string& text) {
  auto schema = JsonSchema::Parse(nlohmann::json::parse(text), nullptr);
  EXPECT_TRUE(schema.ok()) << schema.status();
  return schema.ok() ? *std::move(schema) : *JsonSchema::Parse(true, nullptr);
}

std::string Why(const std::string& narrow, const std::string& wide) {
  return WhyNotNarrower(Schema(narrow), Schema(wide));
}

TEST(SchemaComparisonTest, NarrowerSchemasAreAccepted) {
  for (
      const auto& [narrow, wide] : std::vector<std::pair<std::string, std::string>>{
          {R"j({"type": "string"})j", R"j({"type": "string"})j"},
          {R"j({"type": "string"})j", "true"},
          {"false", R"j({"type": "string"})j"},
          {R"j({"type": "integer"})j", R"j({"type": ["number", "null"]})j"},
          {R"j({"type": "integer", "minimum": 5})j", R"j({"type": "integer", "minimum": 1})j"},
          {R"j({"type": "integer", "exclusiveMinimum": 1})j",
           R"j({"type": "integer", "minimum": 1})j"},
          {R"j({"type": "integer", "minimum": 2})j",
           R"j({"type": "integer", "exclusiveMinimum": 1})j"},
          {R"j({"type": "string"})j", R"j({"type": ["string", "number"], "minimum": 1})j"},
          {R"j({"enum": ["a"]})j", R"j({"type": "string", "enum": ["a", "b"]})j"},
          {R"j({"const": "ab"})j", R"j({"type": "string", "pattern": "^a"})j"},
          {R"j({"type": "string", "pattern": "^a", "maxLength": 3})j",
           R"j({"type": "string", "pattern": "^a"})j"},
          {R"j({"type": "array", "items": {"type": "integer"}, "maxItems": 2})j",
           R"j({"type": "array", "items": {"type": "number"}})j"},
          {R"j({"type": "object", "required": ["a", "b"], "properties": {"a": {"const": 1}}, "additionalProperties": false})j",
           R"j({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "c": {"type": "string"}}})j"},
          {R"j({"type": "string", "title": "Region", "default": "eu"})j",
           R"j({"type": "string"})j"}}) {
    EXPECT_EQ(Why(narrow, wide), "") << narrow << " in " << wide;
  }
}

TEST(SchemaComparisonTest, WiderSchemasAreRefusedWithTheReason) {
  struct Case {
    std::string narrow, wide, why;
  };
  for (const Case& c : std::vector<Case>{
           {"true", R"j({"type": "string"})j", "has no \"type\""},
           {R"j({"type": "number"})j", R"j({"type": "integer"})j", "does not admit number"},
           {R"j({"type": "integer"})j", R"j({"type": "integer", "maximum": 9})j",
            "\"maximum\" of the type is 9"},
           {R"j({"type": "integer", "minimum": 1})j",
            R"j({"type": "integer", "exclusiveMinimum": 1})j",
            "\"exclusiveMinimum\" of the type is 1"},
           {R"j({"enum": ["a", "z"]})j", R"j({"enum": ["a", "b"]})j", "does not admit value 2"},
           {R"j({"type": "string"})j", R"j({"type": "string", "enum": ["a"]})j",
            "lists its values"},
           {R"j({"type": "string", "pattern": "^ab"})j", R"j({"type": "string", "pattern": "^a"})j",
            "cannot be decided"},
           {R"j({"anyOf": [{"type": "string"}]})j",
            R"j({"anyOf": [{"type": "string"}, {"type": "null"}]})j", "cannot be decided"},
           {R"j({"type": "array"})j", R"j({"type": "array", "items": {"type": "string"}})j",
            "/items: "},
           {R"j({"type": "object", "properties": {"a": {"type": "string"}}})j",
            R"j({"type": "object", "properties": {"a": {"type": "integer"}}})j", "/properties/a: "},
           {R"j({"type": "object", "properties": {"x": {"type": "string"}}})j",
            R"j({"type": "object", "additionalProperties": false})j", "/properties/x: "},
           {R"j({"type": "object"})j", R"j({"type": "object", "required": ["a"]})j",
            "requires \"a\""},
           {R"j({"type": "array"})j", R"j({"type": "array", "uniqueItems": true})j", "uniqueItems"},
           {R"j({"type": "string"})j", "false", "admits no value"}}) {
    EXPECT_THAT(Why(c.narrow, c.wide), HasSubstr(c.why)) << c.narrow << " in " << c.wide;
  }
}

// Values are checked one by one, so their number counts, too.
TEST(SchemaComparisonTest, ComparisonOfManyValuesWithManyPartsIsRefused) {
  nlohmann::json wide;
  nlohmann::json narrow;
  for (int i = 0; i < 1'000; ++i) wide["allOf"].push_back({{"type", "string"}});
  for (int i = 0; i < 3'000; ++i) narrow["enum"].push_back(std::to_string(i));
  EXPECT_THAT(WhyNotNarrower(Schema(narrow.dump()), Schema(wide.dump())),
              HasSubstr("too large to be compared"));
}

}  // namespace
}  // namespace muster
