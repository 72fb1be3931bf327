#include "cli/bundles/bundle_content.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/temporary_folder.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"
#include "services/common/templates/canonical_document.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

class BundleContentTest : public ::testing::Test {
 protected:
  BundleContentTest() {
    config_ = Blob("{}");
    layer_ = Blob(std::string(1'000, 'l'));
    image_ = Blob(absl::StrCat(R"({"schemaVersion":2,"config":)", Reference(config_, 2),
                               R"(,"layers":[)", Reference(layer_, 1'000), "]}"));
    Document(absl::StrCat(kTypeFolder, "greet@1.0.0.json"), Type("1.0.0"));
    Document(absl::StrCat(kTemplateFolder, "hi@1.4.0.json"), Template());
  }

  static std::string Reference(const std::string& sha256, int64_t size) {
    return absl::StrCat(R"({"digest":"sha256:)", sha256, R"(","size":)", size, "}");
  }

  std::string Type(const std::string& version) const {
    return absl::StrCat("apiVersion: muster/v1\nkind: TemplateType\nname: greet\nversion: ",
                        version, "\nimage: r.example/greet@sha256:", image_, "\ncontract: 1\n");
  }

  static std::string Template() {
    return "apiVersion: muster/v1\nkind: Template\nname: hi\nversion: 1.4.0\ntype: greet@1.0.0\n";
  }

  void Member(const std::string& path, const std::string& content) {
    const fs::path file = fs::path(folder_.path()) / path;
    fs::create_directories(file.parent_path());
    ASSERT_TRUE(WriteFileAtomically(file.string(), content).ok());
    std::erase_if(members_, [&](const BundleMember& member) { return member.path == path; });
    members_.push_back({path, static_cast<int64_t>(content.size()), ToHex(Sha256::Of(content))});
  }

  std::string Blob(const std::string& content) {
    const std::string sha256 = ToHex(Sha256::Of(content));
    Member(absl::StrCat(kBundleBlobs, sha256), content);
    return sha256;
  }

  void Document(const std::string& path, const std::string& yaml) {
    const auto document = CanonicalDocument(yaml);
    ASSERT_TRUE(document.ok()) << document.status();
    Member(path, *document);
  }

  void Remove(const std::string& path) {
    std::erase_if(members_, [&](const BundleMember& member) { return member.path == path; });
  }

  absl::StatusOr<BundleContent> Read() {
    return ReadBundleContent(folder_.path(), members_, "site.tar");
  }

  std::string Fault() {
    const absl::Status status = Read().status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }

  const TemporaryFolder folder_{::testing::TempDir()};
  std::vector<BundleMember> members_;
  std::string config_;
  std::string layer_;
  std::string image_;
};

TEST_F(BundleContentTest, DocumentsAndTheirImagesAreRead) {
  const auto content = Read();
  ASSERT_TRUE(content.ok()) << content.status();
  ASSERT_EQ(content->types.size(), 1u);
  EXPECT_EQ(content->types[0].version, "greet@1.0.0");
  ASSERT_EQ(content->templates.size(), 1u);
  EXPECT_EQ(content->templates[0].type, "greet@1.0.0");
  ASSERT_EQ(content->images.size(), 1u);
  EXPECT_EQ(content->images.begin()->first, "r.example/greet@sha256:" + image_);
  EXPECT_EQ(content->images.begin()->second.size(), 1'002);
}

TEST_F(BundleContentTest, DocumentOfAnotherVersionOrKindIsRefused) {
  Document(absl::StrCat(kTypeFolder, "greet@1.0.0.json"), Type("2.0.0"));
  EXPECT_NE(Fault().find("greet@2.0.0"), std::string::npos);
  Document(absl::StrCat(kTypeFolder, "greet@1.0.0.json"), Template());
  EXPECT_EQ(ReasonOf(Read().status()), "BUNDLE_UNUSABLE");
}

TEST_F(BundleContentTest, DocumentInAnotherFormIsRefused) {
  Member(absl::StrCat(kTypeFolder, "greet@1.0.0.json"), Type("1.0.0"));
  EXPECT_NE(Fault().find("as the jobs service stores it"), std::string::npos);
}

TEST_F(BundleContentTest, TemplateWithoutItsTypeIsRefused) {
  Document(absl::StrCat(kTemplateFolder, "hi@1.4.0.json"),
           absl::StrReplaceAll(Template(), {{"greet@1.0.0", "greet@1.1.0"}}));
  EXPECT_NE(Fault().find("greet@1.1.0"), std::string::npos);
}

TEST_F(BundleContentTest, MissingBlobsOfAnImageAreRefused) {
  for (const std::string& blob : {image_, config_, layer_}) {
    const auto before = members_;
    Remove(absl::StrCat(kBundleBlobs, blob));
    EXPECT_NE(Fault().find(blob), std::string::npos);
    members_ = before;
  }
}

TEST_F(BundleContentTest, BlobThatNoImageHasIsRefused) {
  const std::string other = Blob("other");
  EXPECT_NE(Fault().find(other), std::string::npos);
}

TEST_F(BundleContentTest, AllPlatformsOfAnIndexAreRequired) {
  const std::string second = Blob(
      absl::StrCat(R"({"schemaVersion":2,"config":)", Reference(config_, 2), R"(,"layers":[]})"));
  const std::string one = image_;
  image_ = Blob(absl::StrCat(R"({"schemaVersion":2,"manifests":[)", Reference(one, 1), ",",
                             Reference(second, 1), "]}"));
  Document(absl::StrCat(kTypeFolder, "greet@1.0.0.json"), Type("1.0.0"));
  const auto content = Read();
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->images.begin()->second.manifests.size(), 2u);
  Remove(absl::StrCat(kBundleBlobs, second));
  EXPECT_NE(Fault().find(second), std::string::npos);
}

TEST_F(BundleContentTest, ManifestOfAnotherFormatIsRefused) {
  image_ = Blob(R"({"schemaVersion":1,"fsLayers":[]})");
  Document(absl::StrCat(kTypeFolder, "greet@1.0.0.json"), Type("1.0.0"));
  EXPECT_EQ(ReasonOf(Read().status()), "BUNDLE_UNUSABLE");
  EXPECT_NE(Fault().find("schema 2 of Docker"), std::string::npos);
}

TEST_F(BundleContentTest, BundleWithoutDocumentsIsRefused) {
  members_.clear();
  EXPECT_NE(Fault().find("no document"), std::string::npos);
}

TEST_F(BundleContentTest, LayoutNamesTheImages) {
  const auto content = Read();
  ASSERT_TRUE(content.ok());
  ASSERT_TRUE(WriteLayout(folder_.path(), content->images).ok());
  const auto text = ReadFileBounded(folder_.path() + "/index.json", 10'000);
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("\"digest\":\"sha256:" + image_), std::string::npos);
  EXPECT_NE(text->find("r.example/greet@sha256:" + image_), std::string::npos);
}

}  // namespace
}  // namespace muster::cli
