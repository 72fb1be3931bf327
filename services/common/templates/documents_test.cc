#include "services/common/templates/documents.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kImage = "registry.example/types/ansible@sha256:" + std::string(64, 'a');

std::string TypeText(const std::string& more = "") {
  return absl::StrCat(
      "apiVersion: muster/v1\n"
      "kind: TemplateType\n"
      "name: ansible\n"
      "version: 1.2.0\n"
      "contract: 1\n"
      "image: ",
      kImage,
      "\n"
      "limits: {memory: 512MiB, cpus: 0.5, processes: 64, time: 5m, output: 1MiB}\n"
      "definitions: {zone: {type: string, enum: [eu, us]}}\n"
      "parameters:\n"
      "  region: {schema: {$ref: \"#/definitions/zone\"}, required: true}\n"
      "outputs:\n"
      "  url: {schema: {type: string}, required: true}\n",
      more);
}

std::string TemplateText(const std::string& more = "") {
  return absl::StrCat(
      "apiVersion: muster/v1\n"
      "kind: Template\n"
      "name: web\n"
      "version: 1.0.0-rc.1\n"
      "type: ansible@1.2.0\n",
      more);
}

std::string Mistakes(const absl::Status& status) {
  EXPECT_EQ(ReasonOf(status), "INVALID_DOCUMENT") << status;
  return std::string(status.message());
}

TEST(DocumentsTest, TypeIsRead) {
  const auto type =
      ReadType(TypeText("actions: [deploy, destroy]\nidempotent: [destroy]\nadHoc: true\n"));
  ASSERT_TRUE(type.ok()) << type.status();
  EXPECT_EQ(type->name, "ansible");
  EXPECT_EQ(type->version, "1.2.0");
  EXPECT_EQ(type->image, kImage);
  EXPECT_TRUE(type->ad_hoc);
  EXPECT_THAT(type->actions, ElementsAre("deploy", "destroy"));
  EXPECT_THAT(type->idempotent, ElementsAre("destroy"));
  EXPECT_EQ(type->network, "none");
  EXPECT_EQ(type->limits.memory, int64_t{512} << 20);
  EXPECT_EQ(type->limits.cpus, 0.5);
  EXPECT_EQ(type->limits.processes, 64);
  EXPECT_EQ(type->limits.time, absl::Minutes(5));
  EXPECT_EQ(type->limits.output, int64_t{1} << 20);
  ASSERT_EQ(type->parameters.size(), 1u);
  EXPECT_EQ(type->parameters[0].schema.json()["enum"].size(), 2u);
  ASSERT_EQ(type->outputs.size(), 1u);
  EXPECT_TRUE(type->outputs[0].required);
}

TEST(DocumentsTest, EveryMistakeOfATypeIsListed) {
  const std::string mistakes = Mistakes(ReadType("apiVersion: muster/v2\n"
                                                 "kind: Thing\n"
                                                 "name: .x\n"
                                                 "version: 1.02.0\n"
                                                 "image: busybox:latest\n"
                                                 "contract: 2\n"
                                                 "actions: [destroy]\n"
                                                 "idempotent: [deploy]\n"
                                                 "adHoc: 1\n"
                                                 "nmae: x\n"
                                                 "limits: {memory: 1, cpus: 0, time: 1ms, cpu: 1}\n"
                                                 "parameters: {a: {schema: {type: text}}}\n"
                                                 "outputs: {b: {value: 1}}\n"
                                                 "vault: yes please\n")
                                            .status());
  for (const char* mistake :
       {"/apiVersion: must be \"muster/v1\"", "/kind: must be \"TemplateType\"", "/name: must be",
        "/version: must be a version", "/image: must be NAME@sha256", "/contract: must be 1",
        "/actions: must contain deploy", "/idempotent: must be a list of names",
        "/adHoc: must be true or false", "/nmae: no such field", "/limits/memory: must be a size",
        "/limits/cpus: must be", "/limits/time: must be", "/limits/cpu: no such field",
        "/parameters/a/schema", "/outputs/b: an output has no value",
        "/vault: must be true or false"}) {
    EXPECT_THAT(mistakes, HasSubstr(mistake));
  }
  EXPECT_THAT(Mistakes(ReadType("[]").status()), HasSubstr("it has no fields"));
}

TEST(DocumentsTest, PlaceholderOfAnImageIsRefused) {
  std::string text = TypeText();
  text.replace(text.find(std::string(64, 'a')), 64, std::string(64, '0'));
  EXPECT_THAT(Mistakes(ReadType(text).status()),
              HasSubstr("/image: its digest of zeros is a placeholder"));
  text.replace(text.find(std::string(64, '0')), 64, std::string(63, '0') + "1");
  EXPECT_TRUE(ReadType(text).ok());
}

// Else each field that only the other kind has would be a mistake.
TEST(DocumentsTest, DocumentOfTheOtherKindHasOneMistakeWithItsCommand) {
  const absl::Status own = ReadType(TemplateText()).status();
  EXPECT_EQ(Mistakes(own), "invalid document: its kind is Template, not TemplateType");
  EXPECT_THAT(NextStepOf(own), HasSubstr("muster template create"));
  const absl::Status type = ReadTemplate(TypeText()).status();
  EXPECT_EQ(Mistakes(type), "invalid document: its kind is TemplateType, not Template");
  EXPECT_THAT(NextStepOf(type), HasSubstr("muster type push"));
}

TEST(DocumentsTest, VersionsAreThoseOfSemanticVersioning) {
  const auto fits = [](const std::string& version) {
    std::string text = TemplateText();
    text.replace(text.find("1.0.0-rc.1"), 10, absl::StrCat("'", version, "'"));
    return ReadTemplate(text).ok();
  };
  for (const char* version : {"0.0.0", "1.20.300", "1.0.0-alpha", "1.0.0-0.3.7", "1.0.0-x-y.z"}) {
    EXPECT_TRUE(fits(version)) << version;
  }
  for (const char* version : {"1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+5",
                              "v1.2.3", "1.2.3-a..b", "1.2.a", "latest"}) {
    EXPECT_FALSE(fits(version)) << version;
  }
}

TEST(DocumentsTest, TemplateIsMergedWithItsType) {
  const auto type = ReadType(TypeText());
  ASSERT_TRUE(type.ok()) << type.status();
  const auto own = ReadTemplate(
      TemplateText("limits: {memory: 256MiB}\n"
                   "parameters: {region: {schema: {enum: [eu]}, value: eu, delegation: fixed}}\n"));
  ASSERT_TRUE(own.ok()) << own.status();
  const auto merged = MergeTemplate(*type, *own);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->at("region").source, ValueSource::kTemplate);
  const auto wide =
      ReadTemplate(TemplateText("limits: {memory: 1GiB, time: 1h}\n"
                                "parameters: {region: {schema: {type: string}}}\n"
                                "outputs: {url: {}}\n"));
  ASSERT_TRUE(wide.ok()) << wide.status();
  const std::string mistakes = Mistakes(MergeTemplate(*type, *wide).status());
  for (const char* mistake :
       {"/limits/memory: is more than that of the type", "/limits/time: is more",
        "/parameters/region: the schema is not narrower",
        "/outputs/url: the type has this output"}) {
    EXPECT_THAT(mistakes, HasSubstr(mistake));
  }
  EXPECT_THAT(mistakes, Not(HasSubstr("cpus")));
}

TEST(DocumentsTest, TemplateNamesAVersionOfAType) {
  for (const std::string type :
       {"ansible", "ansible@1", "@1.2.0", "ansible@1.2.0@2", "a/b@1.2.0"}) {
    std::string text = TemplateText();
    text.replace(text.find("ansible@1.2.0"), 13, absl::StrCat("'", type, "'"));
    EXPECT_THAT(Mistakes(ReadTemplate(text).status()), HasSubstr("/type: must be NAME@VERSION"));
  }
}

TEST(DocumentsTest, FolderOfABuildIsAPlainPath) {
  const auto type = ReadType(TypeText("build: {folder: /work/site-1.0}\n"));
  ASSERT_TRUE(type.ok()) << type.status();
  EXPECT_EQ(type->build_folder, "/work/site-1.0");
  EXPECT_EQ(ReadType(TypeText())->build_folder, "");
  EXPECT_FALSE(ReadType(TypeText())->vault);
  EXPECT_TRUE(ReadType(TypeText("vault: true\n"))->vault);
  for (const char* folder :
       {"work", "/", "/a/../b", "/a//b", "/a/", "\"/a b\"", "\"/a\\nRUN x\"", "\"/a\\\"\"",
        "/state", "/secrets", "/tmp/a", "/files", "/proc/1", "5", "[a]"}) {
    EXPECT_THAT(
        Mistakes(ReadType(TypeText(absl::StrCat("build: {folder: ", folder, "}\n"))).status()),
        HasSubstr("/build: "))
        << folder;
  }
  EXPECT_THAT(Mistakes(ReadType(TypeText("build: {folder: /a, run: x}\n")).status()),
              HasSubstr("/build: "));
  EXPECT_THAT(Mistakes(ReadType(TypeText("adHoc: true\nbuild: {folder: /a}\n")).status()),
              HasSubstr("/build: a type with adHoc"));
}

TEST(DocumentsTest, BuiltTemplateHasImageAndSource) {
  const std::string image = absl::StrCat("image: ", kImage, "\n");
  const std::string source =
      absl::StrCat("source: {kind: git, sha256: ", std::string(64, 'b'),
                   ", url: \"https://git.example/web\", commit: ", std::string(40, 'c'), "}\n");
  const auto own = ReadTemplate(TemplateText(image + source));
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->image, kImage);
  EXPECT_EQ(own->source.kind(), "git");
  EXPECT_EQ(own->source.commit(), std::string(40, 'c'));
  for (const std::string& more : {image, source}) {
    EXPECT_THAT(Mistakes(ReadTemplate(TemplateText(more)).status()),
                HasSubstr("a built template has both image and source"));
  }
  EXPECT_THAT(Mistakes(ReadTemplate(TemplateText("image: web:1\n" + source)).status()),
              HasSubstr("/image: must be NAME@sha256:DIGEST"));
  EXPECT_THAT(Mistakes(ReadTemplate(TemplateText(image + "source: {kind: svn}\n")).status()),
              HasSubstr("/source: the kind of the source"));
}

}  // namespace
}  // namespace muster
