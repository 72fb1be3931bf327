#include "services/common/templates/resolved_deployment.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

std::string TypeText() {
  return absl::StrCat(
      "apiVersion: muster/v1\nkind: TemplateType\nname: ansible\nversion: 1.2.0\ncontract: 1\n"
      "image: a@sha256:",
      std::string(64, 'a'),
      "\n"
      "actions: [deploy, destroy]\n"
      "limits: {memory: 512MiB, cpus: 0.5, time: 5m}\n"
      "parameters:\n"
      "  region: {schema: {type: string, enum: [eu, us]}, required: true}\n"
      "  size: {schema: {type: integer, maximum: 10}, value: 3}\n"
      "  password: {schema: {type: string, minLength: 8}, sensitive: true}\n"
      "outputs:\n"
      "  url: {schema: {type: string}, required: true}\n");
}

std::string TemplateText(const std::string& type = "ansible@1.2.0") {
  return absl::StrCat(
      "apiVersion: muster/v1\nkind: Template\nname: web\nversion: 1.0.0\ntype: ", type,
      "\n"
      "limits: {memory: 64MiB, output: 1MiB}\n"
      "parameters:\n"
      "  size: {schema: {type: integer, maximum: 10}, value: 5, delegation: fixed}\n"
      "outputs:\n"
      "  id: {}\n");
}

v1::Command::Deployment Deployment(const std::string& parameters = R"({"region": "eu"})") {
  v1::Command::Deployment deployment;
  deployment.set_action("deploy");
  deployment.set_type_document(TypeText());
  deployment.set_template_document(TemplateText());
  deployment.set_parameters(parameters);
  return deployment;
}

void ExpectRefused(const v1::Command::Deployment& deployment, const std::string& reason,
                   const std::string& message) {
  const absl::Status status = ResolveDeployment(deployment).status();
  EXPECT_EQ(ReasonOf(status), reason);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(ResolvedDeploymentTest, TemplateAndDeploymentDecideTheValues) {
  const auto resolved = ResolveDeployment(Deployment());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(ParametersJson(resolved->parameters), R"({"region":"eu","size":5})");
  EXPECT_THAT(resolved->outputs(), ElementsAre(Key("id"), Key("url")));
  EXPECT_EQ(resolved->outputs().at("url")->required, true);
  EXPECT_EQ(resolved->limits.memory, int64_t{64} << 20) << "that of the template";
  EXPECT_EQ(resolved->limits.time, absl::Minutes(5)) << "that of the type";
  EXPECT_EQ(resolved->limits.output, 1 << 20);
  EXPECT_EQ(resolved->limits.processes, std::nullopt);
}

TEST(ResolvedDeploymentTest, TypeIsDeployedAlone) {
  v1::Command::Deployment deployment = Deployment(R"({"region": "us", "size": 7})");
  deployment.clear_template_document();
  deployment.set_action("destroy");
  const auto resolved = ResolveDeployment(deployment);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_FALSE(resolved->own);
  EXPECT_EQ(ParametersJson(resolved->parameters), R"({"region":"us","size":7})");
  EXPECT_THAT(resolved->outputs(), ElementsAre(Key("url")));
  EXPECT_EQ(resolved->limits.memory, int64_t{512} << 20);
}

TEST(ResolvedDeploymentTest, ParametersAreCheckedAgainstBothDocuments) {
  const std::string invalid = "INVALID_PARAMETERS";
  ExpectRefused(Deployment(""), invalid, "region: a value is required");
  ExpectRefused(Deployment(R"({"region": "mars"})"), invalid,
                "region: \"mars\" is not one of the allowed values");
  ExpectRefused(Deployment(R"({"region": "eu", "size": 4})"), invalid, "the template fixes");
  ExpectRefused(Deployment(R"({"region": "eu", "regiom": 4})"), invalid, "no such parameter");
  ExpectRefused(Deployment("[]"), invalid, "not a JSON object");
  ExpectRefused(Deployment("{"), invalid, "not a JSON object");
  ExpectRefused(Deployment("{\"region\": \"\xff\"}"), invalid, "not UTF-8");
  ExpectRefused(Deployment(std::string(33 << 10, ' ')), invalid, "32 KiB");
  ExpectRefused(
      Deployment(absl::StrCat("{\"region\": ", std::string(40, '['), std::string(40, ']'), "}")),
      invalid, "more than 32 levels");
  ExpectRefused(Deployment(R"({"region": "us", "region": "eu"})"), invalid,
                "two members of one name");
  v1::Command::Deployment deployment = Deployment();
  deployment.set_action("reboot");
  ExpectRefused(deployment, invalid, "invalid action \"reboot\": the type has deploy, destroy");
}

TEST(ResolvedDeploymentTest, SecretsAreThoseThatBothDocumentsDeclare) {
  v1::Command::Deployment deployment = Deployment();
  deployment.mutable_type_document()->append("secrets: {db: {}}\n");
  deployment.mutable_template_document()->append("secrets: {db: {required: true}, api: {}}\n");
  ExpectRefused(deployment, "INVALID_SECRETS", "db: is required");
  v1::Command::Deployment with_mistake = deployment;
  with_mistake.set_parameters(R"({"regoin": "eu"})");
  ExpectRefused(with_mistake, "INVALID_PARAMETERS", "regoin: no such parameter");
  ExpectRefused(with_mistake, "INVALID_PARAMETERS", "db: is required");
  auto& secret = *deployment.add_secrets();
  secret.set_name("db");
  secret.set_secret("prod/db");
  secret.set_version(1);
  EXPECT_TRUE(ResolveDeployment(deployment).ok()) << ResolveDeployment(deployment).status();
  secret.set_name("cache");
  ExpectRefused(deployment, "INVALID_SECRETS", "cache: the documents declare no such secret");
  deployment.mutable_type_document()->append("secret: 1\n");
  ExpectRefused(deployment, "INVALID_DOCUMENT", "secret");
}

TEST(ResolvedDeploymentTest, NumbersOfDocumentsAndOfTheDeploymentKeepTheirText) {
  v1::Command::Deployment deployment =
      Deployment(R"({"region": "eu", "id": [123456789012345678901234567890]})");
  deployment.clear_template_document();
  deployment.mutable_type_document()->insert(
      deployment.type_document().find("outputs:"),
      "  id: {}\n  ratio: {schema: {type: number, maximum: 1.5}, value: 0.10}\n");
  const auto resolved = ResolveDeployment(deployment);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(ParametersJson(resolved->parameters),
            R"({"id":[123456789012345678901234567890],"ratio":0.10,"region":"eu","size":3})");
}

TEST(ResolvedDeploymentTest, FaultOfBothSchemasIsListedOnce) {
  v1::Command::Deployment deployment = Deployment(R"({"region": "eu", "size": 11})");
  std::string own = TemplateText();
  own.replace(own.find(", value: 5, delegation: fixed"), 29, "");
  deployment.set_template_document(own);
  EXPECT_EQ(ToStd(ResolveDeployment(deployment).status().message()),
            "invalid parameters: size: 11 is above the maximum, 10");
}

TEST(ResolvedDeploymentTest, RefusalDoesNotShowASensitiveValue) {
  const absl::Status status =
      ResolveDeployment(Deployment(R"({"region": "eu", "password": "swordfi"})")).status();
  EXPECT_EQ(ReasonOf(status), "INVALID_PARAMETERS");
  EXPECT_THAT(std::string(status.message()), HasSubstr("password"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("swordfi")));
}

TEST(ResolvedDeploymentTest, DocumentsMustBelongTogether) {
  const std::string invalid = "INVALID_DOCUMENT";
  v1::Command::Deployment deployment = Deployment();
  deployment.set_template_document(TemplateText("ansible@1.3.0"));
  ExpectRefused(deployment, invalid, "of type ansible@1.3.0, not of ansible@1.2.0");
  deployment = Deployment();
  deployment.set_type_document("{");
  ExpectRefused(deployment, invalid, "not YAML");
  deployment = Deployment();
  deployment.set_template_document(absl::StrCat(TemplateText(), "  url: {}\n"));
  ExpectRefused(deployment, invalid, "the type has this output");
  for (const bool of_type : {true, false}) {
    deployment = Deployment();
    (of_type ? deployment.mutable_type_document() : deployment.mutable_template_document())
        ->append(25 << 10, '\n');
    ExpectRefused(deployment, invalid, "24 KiB");
  }
}

TEST(ResolvedDeploymentTest, OnlyAnAdHocTypeTakesFiles) {
  v1::Command::Deployment deployment = Deployment();
  deployment.add_files()->set_path("main.sh");
  ExpectRefused(deployment, "INVALID_FILES", "takes none");
  deployment.set_type_document(absl::StrCat(TypeText(), "adHoc: true\n"));
  EXPECT_TRUE(ResolveDeployment(deployment).ok());
  deployment.add_files()->set_path("../main.sh");
  ExpectRefused(deployment, "INVALID_FILES", "../main.sh");
  deployment.clear_files();
  ExpectRefused(deployment, "INVALID_FILES", "there are none");
}

TEST(ResolvedDeploymentTest, ImageIsThatOfTheBuiltTemplateElseThatOfTheType) {
  v1::Command::Deployment deployment = Deployment();
  EXPECT_EQ(ResolveDeployment(deployment)->image(),
            absl::StrCat("a@sha256:", std::string(64, 'a')));
  const std::string image = absl::StrCat("b@sha256:", std::string(64, 'b'));
  deployment.set_template_document(
      absl::StrCat(TemplateText(), "image: ", image,
                   "\nsource: {kind: zip, sha256: ", std::string(64, 'c'), "}\n"));
  const auto resolved = ResolveDeployment(deployment);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->image(), image);
}

}  // namespace
}  // namespace muster
