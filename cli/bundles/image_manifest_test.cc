#include "cli/bundles/image_manifest.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster::cli {
namespace {

const std::string kA(64, 'a');
const std::string kB(64, 'b');

std::string Reference(const std::string& sha256, const std::string& size,
                      const std::string& type = "x") {
  return absl::StrCat(R"({"mediaType":")", type, R"(","digest":"sha256:)", sha256, R"(","size":)",
                      size, "}");
}

std::string Image(const std::string& config, const std::string& layers) {
  return absl::StrCat(R"({"schemaVersion":2,"config":)", config, R"(,"layers":[)", layers, "]}");
}

TEST(ImageManifestTest, ImageRefersToConfigurationAndLayers) {
  const auto manifest =
      ParseImageManifest(Image(Reference(kA, "7"), absl::StrCat(Reference(kB, "9"))));
  ASSERT_TRUE(manifest);
  ASSERT_EQ(manifest->blobs.size(), 2u);
  EXPECT_EQ(manifest->blobs[0].sha256, kA);
  EXPECT_EQ(manifest->blobs[1].size, 9);
  EXPECT_TRUE(manifest->manifests.empty());
}

TEST(ImageManifestTest, IndexRefersToManifests) {
  const auto manifest = ParseImageManifest(
      absl::StrCat(R"({"schemaVersion":2,"manifests":[)", Reference(kA, "7"), "]}"));
  ASSERT_TRUE(manifest);
  ASSERT_EQ(manifest->manifests.size(), 1u);
  EXPECT_EQ(manifest->manifests[0].sha256, kA);
}

TEST(ImageManifestTest, OtherTextsAreRefused) {
  const std::string good = Image(Reference(kA, "7"), "");
  ASSERT_TRUE(ParseImageManifest(good));
  const std::string nested(100'000, '[');
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"schemaVersion":1})"),
        good.substr(1), Image(Reference(kA, "-7"), ""), Image(Reference(kA, "7.5"), ""),
        Image(Reference(kA, "18446744073709551615"), ""), Image(Reference("../../etc", "7"), ""),
        Image(Reference(std::string(64, 'A'), "7"), ""), Image(Reference(kA, "7"), "1"),
        absl::StrCat(R"({"schemaVersion":2,"x":)", nested),
        absl::StrCat(R"({"schemaVersion":2,"manifests":[],"config":)", Reference(kA, "7"),
                     R"(,"layers":[]})")}) {
    EXPECT_FALSE(ParseImageManifest(text)) << text.substr(0, 200);
  }
  for (const char* type : {"application/vnd.oci.image.index.v1+json",
                           "application/vnd.docker.distribution.manifest.list.v2+json"}) {
    EXPECT_FALSE(ParseImageManifest(
        absl::StrCat(R"({"schemaVersion":2,"manifests":[)", Reference(kA, "7", type), "]}")))
        << type;
  }
}

TEST(ImageManifestTest, SizeAndReferencesAreBounded) {
  std::string layers = Reference(kA, "1");
  for (size_t i = 0; i < kMaxReferences; ++i) absl::StrAppend(&layers, ",", Reference(kA, "1"));
  EXPECT_FALSE(ParseImageManifest(Image(Reference(kA, "7"), layers)));
  EXPECT_FALSE(ParseImageManifest(
      absl::StrCat(Image(Reference(kA, "7"), ""), std::string(kMaxManifest, ' '))));
}

}  // namespace
}  // namespace muster::cli
