#include "services/common/templates/deployment_content.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

TEST(DeploymentContentTest, IsDescribedWithoutSecretsAndContents) {
  v1::Command::Deployment content;
  content.set_action("deploy");
  const std::string image = absl::StrCat("a@sha256:", std::string(64, 'a'));
  content.set_type_document(
      absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: shell\nversion: 1.0.0\n"
                   "contract: 1\nadHoc: true\nimage: ",
                   image,
                   "\n"
                   "parameters:\n"
                   "  price: {schema: {type: number}, value: 0.10}\n"
                   "  token: {schema: {type: string}, sensitive: true}\n"));
  content.set_template_document(
      "apiVersion: muster/v1\nkind: Template\nname: checks\nversion: 2.0.0\n"
      "type: shell@1.0.0\n");
  content.set_parameters(R"({"token": "s3cret"})");
  v1::Command::File& file = *content.add_files();
  file.set_path("main.sh");
  file.set_content("echo hello");
  file.set_executable(true);
  const auto resolved = ResolveDeployment(content);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  v1::Deployment description;
  DescribeContent(content, *resolved, &description);
  EXPECT_EQ(description.type(), "shell@1.0.0");
  EXPECT_EQ(description.template_(), "checks@2.0.0");
  EXPECT_EQ(description.action(), "deploy");
  EXPECT_EQ(description.image(), image);
  ASSERT_EQ(description.parameters_size(), 2);
  EXPECT_EQ(description.parameters(0).value(), "0.10");
  EXPECT_EQ(description.parameters(0).source(), "type default");
  EXPECT_TRUE(description.parameters(1).sensitive());
  ASSERT_EQ(description.files_size(), 1);
  EXPECT_EQ(description.files(0).size(), 10);
  EXPECT_EQ(description.files(0).sha256().size(), 32u);
  EXPECT_TRUE(description.files(0).executable());
  const std::string text = description.SerializeAsString();
  EXPECT_EQ(text.find("s3cret"), std::string::npos);
  EXPECT_EQ(text.find("echo hello"), std::string::npos);
}

TEST(DeploymentContentTest, TypeAloneHasNoTemplate) {
  v1::Command::Deployment content;
  content.set_action("destroy");
  content.set_type_document(
      absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: t\nversion: 1.0.0\n"
                   "contract: 1\nactions: [deploy, destroy]\nimage: a@sha256:",
                   std::string(64, 'a'), "\n"));
  v1::Deployment description;
  DescribeContent(content, ResolveDeployment(content).value(), &description);
  EXPECT_EQ(description.template_(), "");
  EXPECT_EQ(description.action(), "destroy");
}

}  // namespace
}  // namespace muster
