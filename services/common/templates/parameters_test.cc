#include "services/common/templates/parameters.h"

#include <string>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/templates/yaml_to_json.h"

namespace muster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

constexpr char kType[] = R"(
region: {schema: {type: string, enum: [eu, us, ap]}, required: true}
size: {schema: {type: integer, minimum: 1, maximum: 100}, value: 3}
mode: {schema: {type: string}, value: safe, delegation: fixed}
password: {schema: {type: string, minLength: 8}, sensitive: true}
)";

class ParametersTest : public ::testing::Test {
 protected:
  std::vector<Parameter> Read(const std::string& yaml) {
    const auto json = YamlToJson(yaml);
    EXPECT_TRUE(json.ok()) << json.status();
    return ReadParameters(*json, nullptr, &mistakes_);
  }

  // Merges the template with kType.
  MergedParameters Merge(const std::string& yaml) {
    type_ = Read(kType);
    EXPECT_THAT(mistakes_, IsEmpty());
    template_ = Read(yaml);
    return MergeParameters(type_, template_, &mistakes_);
  }

  std::string Mistakes() { return absl::StrJoin(mistakes_, "\n"); }

  std::vector<Parameter> type_;
  std::vector<Parameter> template_;
  std::vector<std::string> mistakes_;
};

TEST_F(ParametersTest, EveryValueHasItsSource) {
  const MergedParameters merged = Merge(
      "region: {schema: {type: string, enum: [eu, us]}}\n"
      "size: {schema: {type: integer, minimum: 1, maximum: 10}, value: 5}\n"
      "owner: {schema: {type: string}, value: ops, delegation: fixed}\n"
      "note: {}\n");
  ASSERT_THAT(mistakes_, IsEmpty());
  auto resolved = ResolveParameters(merged, {{"region", "us"}}, &mistakes_);
  EXPECT_THAT(mistakes_, IsEmpty());
  ASSERT_EQ(resolved.size(), 4u);
  EXPECT_EQ(resolved.at("region").value, "us");
  EXPECT_EQ(resolved.at("region").source, ValueSource::kDeployment);
  EXPECT_EQ(resolved.at("size").value, 5);
  EXPECT_EQ(resolved.at("size").source, ValueSource::kTemplateDefault);
  EXPECT_EQ(resolved.at("mode").value, "safe");
  EXPECT_EQ(resolved.at("mode").source, ValueSource::kType);
  EXPECT_EQ(resolved.at("owner").source, ValueSource::kTemplate);
  EXPECT_FALSE(resolved.contains("note"));
  resolved =
      ResolveParameters(merged, {{"region", "eu"}, {"size", 7}, {"note", {1, 2}}}, &mistakes_);
  EXPECT_THAT(mistakes_, IsEmpty());
  EXPECT_EQ(resolved.at("size").source, ValueSource::kDeployment);
  EXPECT_EQ(resolved.at("note").value, Json({1, 2}));
  EXPECT_EQ(SourceName(ValueSource::kTypeDefault), "type default");
}

TEST_F(ParametersTest, TypeDefaultRemains) {
  const MergedParameters merged = Merge("region: {value: eu, schema: {enum: [eu]}}");
  EXPECT_THAT(mistakes_, IsEmpty()) << Mistakes();
  const auto resolved = ResolveParameters(merged, {}, &mistakes_);
  EXPECT_EQ(resolved.at("size").value, 3);
  EXPECT_EQ(resolved.at("size").source, ValueSource::kTypeDefault);
  EXPECT_EQ(resolved.at("region").source, ValueSource::kTemplateDefault);
}

// The default of the type is no value of the narrower schema.
TEST_F(ParametersTest, TypeDefaultThatTheTemplateDoesNotAdmitIsDropped) {
  const MergedParameters merged =
      Merge("size: {schema: {type: integer, minimum: 10, maximum: 20}, required: true}");
  EXPECT_THAT(mistakes_, IsEmpty()) << Mistakes();
  ResolveParameters(merged, {{"region", "eu"}}, &mistakes_);
  EXPECT_THAT(mistakes_, ElementsAre("size: a value is required"));
}

TEST_F(ParametersTest, TemplateChangesNothingThatTheTypeDecided) {
  Merge(
      "mode: {schema: {type: string}, value: fast}\n"
      "region: {schema: {type: string}, value: mars}\n"
      "size: {schema: {type: integer, minimum: 0, maximum: 100}}\n");
  EXPECT_THAT(mistakes_, Contains("/parameters/mode: the type fixes its value"));
  EXPECT_THAT(Mistakes(), HasSubstr("/parameters/region: the schema is not narrower"));
  EXPECT_THAT(Mistakes(), HasSubstr("/parameters/size: the schema is not narrower than that of the "
                                    "type: /: \"minimum\" of the type is 1"));
  EXPECT_EQ(mistakes_.size(), 3u);
}

TEST_F(ParametersTest, TemplateWithoutASchemaKeepsThatOfTheType) {
  const auto merged = Merge("size: {value: 5, delegation: fixed}\nregion: {required: true}\n");
  EXPECT_THAT(mistakes_, IsEmpty());
  EXPECT_EQ(merged.at("size").value, Json(5));
  ResolveParameters(merged, {{"region", "mars"}}, &mistakes_);
  EXPECT_THAT(mistakes_, Contains(HasSubstr("region")));
  mistakes_.clear();
  Merge("size: {value: 500, delegation: fixed}\n");
  EXPECT_THAT(mistakes_, Contains(HasSubstr("the schema of the type does not admit its value")));
}

TEST_F(ParametersTest, RequiredAndSensitiveRemain) {
  const MergedParameters merged = Merge(
      "region: {schema: {enum: [eu]}}\n"
      "password: {schema: {type: string, minLength: 10}}\n");
  EXPECT_THAT(mistakes_, IsEmpty()) << Mistakes();
  EXPECT_TRUE(merged.at("region").required);
  EXPECT_TRUE(merged.at("password").sensitive);
  ResolveParameters(merged, {{"password", "hunter2"}}, &mistakes_);
  EXPECT_THAT(mistakes_, Contains("region: a value is required"));
  EXPECT_THAT(mistakes_, Contains("password: the schema does not admit the value"));
  EXPECT_THAT(Mistakes(), Not(HasSubstr("hunter2")));
}

TEST_F(ParametersTest, TemplateMayNotDenyThatAParameterIsRequiredOrSensitive) {
  Merge("region: {required: false}\npassword: {sensitive: false}\n");
  EXPECT_THAT(Mistakes(), HasSubstr("/parameters/region: it is required by the type"));
  EXPECT_THAT(Mistakes(), HasSubstr("/parameters/password: it is sensitive by the type"));
  EXPECT_EQ(mistakes_.size(), 2u);
  mistakes_.clear();
  // With a value it need not be required, and what the type leaves open is no contradiction.
  Merge("region: {value: eu, required: false}\nsize: {required: false, sensitive: false}\n");
  EXPECT_THAT(mistakes_, IsEmpty()) << Mistakes();
}

TEST_F(ParametersTest, ValuesOfADeploymentAreChecked) {
  const MergedParameters merged = Merge("size: {schema: {type: integer, minimum: 1, maximum: 9}}");
  ResolveParameters(merged, {{"region", "eu"}, {"size", 500}, {"mode", "fast"}, {"regoin", "eu"}},
                    &mistakes_);
  EXPECT_THAT(Mistakes(), HasSubstr("size: 500 is above the maximum, 9"));
  EXPECT_THAT(Mistakes(), Not(HasSubstr("maximum, 100"))) << "that of the type is wider";
  EXPECT_THAT(mistakes_, Contains("mode: the type fixes its value"));
  EXPECT_THAT(Mistakes(), HasSubstr("regoin: no such parameter"));
  EXPECT_THAT(Mistakes(), HasSubstr("region"));
}

TEST_F(ParametersTest, MistakesInADocumentAreListed) {
  Read(
      "1a: {}\n"
      "b: text\n"
      "c: {schema: {typ: string}}\n"
      "d: {delegation: fixed}\n"
      "e: {value: 1, delegation: delegated}\n"
      "f: {value: 1, schema: {type: string}}\n"
      "g: {vlaue: 1}\n"
      "h: {required: 1}\n"
      "i: {value: 1, required: true}\n"
      "j: {value: secret, schema: {type: integer}, sensitive: true}\n");
  for (const char* mistake :
       {"/parameters/1a: the name is not", "/parameters/b: must be an object",
        "/parameters/c/schema: invalid JSON Schema at /typ", "/parameters/d: a value is missing",
        "/parameters/e/value: a delegated parameter has no value",
        "/parameters/f/value: ", "/parameters/g/vlaue: no such field",
        "/parameters/h/required: must be true or false", "/parameters/i/required: it has a value",
        "/parameters/j/value: the schema does not admit it"}) {
    EXPECT_THAT(Mistakes(), HasSubstr(mistake));
  }
  EXPECT_THAT(Mistakes(), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace muster
