#include "services/common/templates/build_content.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/templates/canonical_document.h"
#include "services/common/templates/files.h"
#include "services/common/templates/template_source.h"

namespace muster {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string TypeText(const std::string& more) {
  return absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: site\nversion: 1.0.0\n",
                      "contract: 1\nimage: registry.example/site@", kDigest, "\n", more);
}

v1::Command::Build Build() {
  v1::Command::Build build;
  build.set_type_document(CanonicalDocument(TypeText("build: {folder: /work}\n")).value());
  build.set_template_document(
      CanonicalDocument("apiVersion: muster/v1\nkind: Template\nname: web\nversion: 1.4.0\n"
                        "type: site@1.0.0\nlimits: {cpus: 0.50}\n")
          .value());
  v1::Command::File& file = *build.add_files();
  file.set_path("index.html");
  file.set_content("hello");
  build.mutable_source()->set_kind("zip");
  build.mutable_source()->set_sha256(SourceDigest(build.files()));
  build.set_repository("registry.example:5000/templates/web");
  return build;
}

std::string ReasonWith(void (*change)(v1::Command::Build&)) {
  v1::Command::Build build = Build();
  change(build);
  return ReasonOf(ResolveBuild(build).status());
}

v1::JobRecord::Outputs ImageOutput(const std::string& value) {
  v1::JobRecord::Outputs outputs;
  auto& output = *outputs.add_outputs();
  output.set_name("image");
  output.set_value(value);
  return outputs;
}

TEST(BuildContentTest, ContentIsResolved) {
  const auto resolved = ResolveBuild(Build());
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->type.build_folder, "/work");
  EXPECT_EQ(resolved->own.name, "web");
  v1::Deployment description;
  DescribeBuild(Build(), *resolved, &description);
  EXPECT_EQ(description.template_(), "web@1.4.0");
  EXPECT_EQ(description.type(), "site@1.0.0");
  EXPECT_EQ(description.action(), "build");
  EXPECT_EQ(description.image(), "registry.example/site@" + kDigest);
  EXPECT_EQ(description.files(0).path(), "index.html");
  EXPECT_EQ(description.build().repository(), "registry.example:5000/templates/web");
}

TEST(BuildContentTest, InvalidContentIsRefused) {
  EXPECT_EQ(ReasonWith([](auto& b) { b.set_type_document("x"); }), "INVALID_DOCUMENT");
  EXPECT_EQ(ReasonWith([](auto& b) { b.set_type_document(TypeText("")); }), "TYPE_NOT_BUILDABLE");
  EXPECT_EQ(ReasonWith([](auto& b) { b.set_template_document(std::string(25'000, ' ')); }),
            "INVALID_DOCUMENT");
  EXPECT_EQ(ReasonWith([](auto& b) {
              b.set_template_document(BuiltDocument(b, "registry.example/web@" + kDigest).value());
            }),
            "INVALID_DOCUMENT");
  EXPECT_EQ(ReasonWith([](auto& b) {
              b.set_template_document(
                  "apiVersion: muster/v1\nkind: Template\nname: web\n"
                  "version: 1.4.0\ntype: other@1.0.0\n");
            }),
            "INVALID_DOCUMENT");
  EXPECT_EQ(ReasonWith([](auto& b) { b.clear_files(); }), "INVALID_FILES");
  EXPECT_EQ(ReasonWith([](auto& b) { b.mutable_files(0)->set_path("../a"); }), "INVALID_FILES");
  EXPECT_EQ(ReasonWith([](auto& b) {
              b.mutable_files(0)->clear_content();
              b.mutable_files(0)->set_sha256(std::string(32, 'x'));
              b.mutable_files(0)->set_size(1);
            }),
            "INVALID_BUILD")
      << "the digest of the source is not that of the stored file";
  EXPECT_EQ(ReasonWith([](auto& b) { b.mutable_files(0)->set_content("other"); }), "INVALID_BUILD");
  EXPECT_EQ(ReasonWith([](auto& b) { b.mutable_source()->set_kind("svn"); }), "INVALID_BUILD");
  EXPECT_EQ(ReasonWith([](auto& b) { b.set_repository("web"); }), "INVALID_BUILD");
}

TEST(BuildContentTest, SourceHasTheSameDigestIfItsFilesAreStored) {
  EXPECT_EQ(ReasonWith([](auto& b) {
              v1::Command::File& file = *b.mutable_files(0);
              file.set_size(SizeOf(file));
              file.set_sha256(DigestOf(file));
              file.clear_content();
            }),
            "");
}

TEST(BuildContentTest, RepositoryNamesItsRegistry) {
  for (const char* name : {"registry.example/web", "localhost/web", "127.0.0.1:5000/a/b-c__d.e"}) {
    EXPECT_TRUE(IsRepository(name)) << name;
  }
  for (const std::string& name :
       {std::string(""), std::string("web"), std::string("team/web"),
        std::string("registry.example"), std::string("registry.example/Web"),
        std::string("registry.example/web:1"), "registry.example/web@" + kDigest,
        std::string("registry.example//web"), std::string("registry.example/../web"),
        std::string("registry.example/web\n"), std::string("http://registry.example/web"),
        "registry.example/" + std::string(250, 'a')}) {
    EXPECT_FALSE(IsRepository(name)) << name;
  }
}

TEST(BuildContentTest, BuiltDocumentIsThatOfTheTemplateWithImageAndSource) {
  const v1::Command::Build build = Build();
  const std::string image = "registry.example:5000/templates/web@" + kDigest;
  const auto document = BuiltDocument(build, image);
  ASSERT_TRUE(document.ok()) << document.status();
  const auto own = ReadTemplate(*document);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->image, image);
  EXPECT_EQ(own->source.sha256(), build.source().sha256());
  EXPECT_NE(document->find("0.50"), std::string::npos) << "numbers keep their text";
}

TEST(BuildContentTest, VersionIsBuiltFromTheSameDocumentAndFiles) {
  v1::Command::Build build = Build();
  const std::string document = BuiltDocument(build, "registry.example/web@" + kDigest).value();
  EXPECT_TRUE(IsBuiltFrom(document, build));
  EXPECT_FALSE(IsBuiltFrom(build.template_document(), build)) << "it was not built";
  build.mutable_source()->set_kind("folder");
  EXPECT_TRUE(IsBuiltFrom(document, build)) << "the same files";
  build.mutable_source()->set_sha256(std::string(64, '0'));
  EXPECT_FALSE(IsBuiltFrom(document, build));
  build = Build();
  build.set_template_document(build.template_document() + " ");
  EXPECT_FALSE(IsBuiltFrom(document, build));
}

TEST(BuildContentTest, ImageIsOneOfTheRepository) {
  const std::string image = "registry.example/web@" + kDigest;
  const auto found = [&](const std::string& value) {
    return BuiltImage(ImageOutput(value), "registry.example/web");
  };
  EXPECT_EQ(found(absl::StrCat("\"", image, "\"")), image);
  for (const std::string& value : {image, std::string("5"), std::string(""), "\"" + kDigest + "\"",
                                   "\"registry.example/web2@" + kDigest + "\"",
                                   std::string("\"registry.example/web@sha256:0\""),
                                   "\"registry.example/web:1@" + kDigest + "\""}) {
    EXPECT_EQ(found(value), "") << value;
  }
  EXPECT_EQ(BuiltImage({}, "registry.example/web"), "");
  auto two = ImageOutput(absl::StrCat("\"", image, "\""));
  two.add_outputs()->set_name("other");
  EXPECT_EQ(BuiltImage(two, "registry.example/web"), "");
}

}  // namespace
}  // namespace muster
