#include "cli/output/template_hints.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Type(const std::string& more) {
  return absl::StrCat(
      "apiVersion: muster/v1\nkind: TemplateType\nname: site\nversion: 1.0.0\ncontract: 1\n"
      "image: registry.example/types/site@sha256:",
      std::string(64, 'a'), "\n", more);
}

std::string Own(const std::string& more) {
  return absl::StrCat(
      "apiVersion: muster/v1\nkind: Template\nname: web\nversion: 1.4.0\ntype: site@1.0.0\n", more);
}

constexpr char kRequired[] =
    "parameters:\n"
    "  name: {schema: {type: string}, required: true}\n"
    "  region: {schema: {type: string}, required: true}\n"
    "  mode: {schema: {type: string}}\n"
    "secrets:\n"
    "  db: {required: true}\n"
    "  other: {description: optional}\n";

TEST(TemplateHintsTest, CommandNamesWhatTheDocumentsRequire) {
  EXPECT_EQ(TypeHint(Type("")), "Deploy it: muster deploy --type site@1.0.0 --node NODE --wait");
  EXPECT_EQ(TypeHint(Type(absl::StrCat("adHoc: true\n", kRequired))),
            "Deploy it: muster deploy FOLDER --type site@1.0.0 --node NODE --set name=VALUE --set "
            "region=VALUE --secret db=SECRET --wait");
  // The template sets one of them, and requires another secret.
  EXPECT_EQ(DeployHint(Type(kRequired), Own("parameters: {region: {delegation: fixed, value: eu}}\n"
                                            "secrets: {key: {required: true}}\n")),
            "Deploy it: muster deploy web@1.4.0 --node NODE --set name=VALUE --secret db=SECRET "
            "--secret key=SECRET --wait");
  EXPECT_EQ(TypeHint(Type("parameters: {key: {schema: {type: string}, required: true, sensitive: "
                          "true}}\n")),
            "Deploy it: muster deploy --type site@1.0.0 --node NODE --set-file key=FILE --wait");
  EXPECT_EQ(DeployHint(Type("adHoc: true\n"), Own("")),
            "Deploy it: muster deploy web@1.4.0 --files FOLDER --node NODE --wait");
}

TEST(TemplateHintsTest, TemplateWithoutFilesOfABuildableTypeIsNamed) {
  const std::string type = Type("build: {folder: /work}\n");
  EXPECT_EQ(TemplateHint(type, Own(""), "my web.yaml"),
            "It has no files: it runs the image of site@1.0.0 as it is.\n"
            "To build it with files, write another version into the document: muster template "
            "build -f 'my web.yaml' --from SOURCE --node NODE --repository REPOSITORY --wait\n"
            "Deploy it: muster deploy web@1.4.0 --node NODE --wait");
  EXPECT_THAT(TemplateHint(Type(""), Own(""), "web.yaml"), Not(HasSubstr("no files")));
  EXPECT_THAT(TypeHint(type), HasSubstr("Build a template with `type: site@1.0.0` in its document: "
                                        "muster template build -f TEMPLATE.yaml --from"));
}

TEST(TemplateHintsTest, AddedParametersAreNamed) {
  const std::string type = Type(kRequired);
  EXPECT_EQ(AddedParameters(type, Own("parameters: {nmae: {value: x}, zzz: {value: y}}\n")),
            "It adds the parameter nmae to those of site@1.0.0; did you mean name?\n"
            "It adds the parameter zzz to those of site@1.0.0.");
  EXPECT_THAT(AddedParameters(type, Own("parameters: {name: {value: x}}\n")), IsEmpty());
}

TEST(TemplateHintsTest, DocumentOfANewerServiceHasNoHints) {
  const std::string type = Type("newField: 1\n");
  EXPECT_THAT(TypeHint(type), IsEmpty());
  EXPECT_THAT(DeployHint(type, Own("")), IsEmpty());
  EXPECT_THAT(TemplateHint(type, Own(""), "web.yaml"), IsEmpty());
  EXPECT_THAT(AddedParameters(type, Own("parameters: {a: {value: x}}\n")), IsEmpty());
}

}  // namespace
}  // namespace muster::cli
