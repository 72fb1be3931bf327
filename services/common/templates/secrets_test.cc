#include "services/common/templates/secrets.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::vector<SecretDeclaration> Read(const char* json) {
  std::vector<std::string> mistakes;
  auto secrets = ReadSecrets(Json::parse(json), &mistakes);
  EXPECT_THAT(mistakes, ElementsAre());
  return secrets;
}

SecretReferences References(std::initializer_list<std::array<const char*, 2>> list) {
  SecretReferences references;
  for (const auto& [name, secret] : list) {
    auto& one = *references.Add();
    one.set_name(name);
    one.set_secret(secret);
    one.set_version(1);
  }
  return references;
}

TEST(SecretsTest, NamesAreThoseOfAPath) {
  for (const char* name : {"db", "prod/db", "a/b/c.d-e_f"}) EXPECT_TRUE(IsSecretName(name)) << name;
  for (const char* name : {"", "/db", "db/", "a//b", "a/../b", ".db", "a b", "a@1", "a\n"}) {
    EXPECT_FALSE(IsSecretName(name)) << name;
  }
  EXPECT_TRUE(IsSecretName(std::string(253, 'a')));
  EXPECT_FALSE(IsSecretName(std::string(254, 'a')));
}

TEST(SecretsTest, SecretOfVaultHasAPathAndAField) {
  const auto reference = ReadVaultReference("vault:prod/db#user.name");
  ASSERT_TRUE(reference.has_value());
  EXPECT_EQ(reference->path, "prod/db");
  EXPECT_EQ(reference->field, "user.name");
  for (const char* secret :
       {"prod/db", "vault:prod/db", "vault:#a", "vault:prod/db#", "vault:a b#c", "vault:a/../b#c",
        "vault:a#b#c", "vault:a#b/c", "vault:a?x=1#b", "vault:a%2f#b", "Vault:a#b", "vault:/a#b"}) {
    EXPECT_FALSE(ReadVaultReference(secret).has_value()) << secret;
  }
  EXPECT_FALSE(ReadVaultReference("vault:" + std::string(253, 'a') + "#b").has_value());
  EXPECT_TRUE(IsSecretSource("prod/db"));
  EXPECT_TRUE(IsSecretSource("vault:prod/db#password"));
  EXPECT_FALSE(IsSecretName("vault:prod/db#password"));
}

TEST(SecretsTest, MistakesOfADocumentHaveTheirPlaces) {
  std::vector<std::string> mistakes;
  ReadSecrets(Json::parse(R"({"a b": {}, "c": 1, "d": {"requird": true}, "e": {"required": 1},
                              "f": {"description": 1}})"),
              &mistakes);
  EXPECT_THAT(mistakes,
              ElementsAre("/secrets/a b: the name is not [A-Za-z_][A-Za-z0-9_]{0,127}",
                          "/secrets/c: must be an object", HasSubstr("/secrets/d/requird: no such"),
                          "/secrets/e/required: must be true or false",
                          "/secrets/f/description: must be text"));
  mistakes.clear();
  ReadSecrets(Json::array(), &mistakes);
  EXPECT_THAT(mistakes, ElementsAre("/secrets: must be an object"));
}

TEST(SecretsTest, TemplateAddsAndRequiresSecrets) {
  const auto merged = MergeSecrets(Read(R"({"db": {"description": "of the type"}})"),
                                   Read(R"({"db": {"required": true}, "api": {}})"));
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_EQ(merged[0].name, "api");
  EXPECT_FALSE(merged[0].required);
  EXPECT_EQ(merged[1].name, "db");
  EXPECT_EQ(merged[1].description, "of the type");
  EXPECT_TRUE(merged[1].required);
}

TEST(SecretsTest, CommandHasDeclaredSecretsSortedAndAllRequiredOnes) {
  const auto declared = Read(R"({"api": {}, "db": {"required": true}})");
  EXPECT_TRUE(CheckSecrets(declared, References({{"db", "prod/db"}})).ok());
  EXPECT_TRUE(CheckSecrets(declared, References({{"api", "a"}, {"db", "prod/db"}})).ok());
  const auto problem = [&](const SecretReferences& references) {
    const absl::Status status = CheckSecrets(declared, references);
    EXPECT_EQ(ReasonOf(status), "INVALID_SECRETS");
    return std::string(status.message());
  };
  EXPECT_THAT(problem({}), HasSubstr("db: is required"));
  EXPECT_THAT(problem(References({{"db", "a"}, {"api", "a"}})),
              HasSubstr("api: the names are not"));
  EXPECT_THAT(problem(References({{"db", "a"}, {"db", "a"}})), HasSubstr("db: the names are not"));
  EXPECT_THAT(problem(References({{"db", "a"}, {"dbs", "a"}})), HasSubstr("no such secret"));
  EXPECT_THAT(problem(References({{"db", "../a"}})), HasSubstr("is no version"));
  SecretReferences without_version = References({{"db", "a"}});
  without_version[0].clear_version();
  EXPECT_THAT(problem(without_version), HasSubstr("\"a@0\" is no version"));
  SecretReferences many;
  for (int i = 0; i <= kMaxDeploymentSecrets; ++i) many.Add()->set_name("db");
  EXPECT_THAT(problem(many), HasSubstr("more than 16"));
}

}  // namespace
}  // namespace muster
