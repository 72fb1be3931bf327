// Real registries and the real skopeo.
#include "cli/bundles/image_copier.h"

#include <atomic>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "cli/temporary_folder.h"
#include "gtest/gtest.h"
#include "services/agent/docker/testing/test_registry.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"

namespace muster::cli {
namespace {

namespace fs = std::filesystem;

class ImageCopierTest : public ::testing::Test {
 protected:
  ImageCopierTest() {
    fs::create_directories(blobs_);
    fs::create_directories(pulled_);
  }

  std::string Blob(const std::string& content) {
    const std::string sha256 = ToHex(Sha256::Of(content));
    EXPECT_TRUE(WriteFileAtomically(absl::StrCat(blobs_, "/", sha256), content).ok());
    sizes_[sha256] = static_cast<int64_t>(content.size());
    return sha256;
  }

  std::string Reference(const std::string& type, const std::string& sha256) const {
    return absl::StrCat(R"({"mediaType":"application/vnd.docker.)", type, R"(","digest":"sha256:)",
                        sha256, R"(","size":)", sizes_.at(sha256), "}");
  }

  // Makes the image of one platform in the format of `docker push`.
  std::string Image(const std::string& name) {
    // An empty tar, as gzip, is the layer of each.
    const std::string layer =
        Blob(std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff\x63\x60\x18\x05\xa3\x60"
                         "\x14\x8c\x54\0\0\x2e\xaf\xb5\xef\0\x04\0\0",
                         29));
    const std::string config = Blob(absl::StrCat(
        R"({"architecture":"amd64","os":"linux","author":")", name,
        R"(","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:5f70bf18a086007016e948b04aed)",
        R"(3b82103a36bea41755b6cddfaf10ace3c6ef"]}})"));
    image_.blobs[layer] = sizes_[layer];
    image_.blobs[config] = sizes_[config];
    return Blob(absl::StrCat(
        R"({"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",)",
        R"("config":)", Reference("container.image.v1+json", config), R"(,"layers":[)",
        Reference("image.rootfs.diff.tar.gzip", layer), "]}"));
  }

  // Makes an index of two platforms, and returns its digest.
  std::string Index() {
    const std::string one = Image("one");
    const std::string two = Image("two");
    image_.manifests = {one, two};
    const auto entry = [&](const std::string& sha256, const std::string& platform) {
      std::string text = Reference("distribution.manifest.v2+json", sha256);
      text.pop_back();
      return absl::StrCat(text, R"(,"platform":{"os":"linux","architecture":")", platform, "\"}}");
    };
    return Blob(
        absl::StrCat(R"({"schemaVersion":2,"mediaType":)",
                     R"("application/vnd.docker.distribution.manifest.list.v2+json","manifests":[)",
                     entry(one, "amd64"), ",", entry(two, "arm64"), "]}"));
  }

  ImageCopier Copier(RegistryOptions options = {}) {
    return ImageCopier(std::move(options), [this] { return stopped_.load(); });
  }

  const TemporaryFolder folder_{::testing::TempDir()};
  const std::string blobs_ = folder_.path() + "/content/sha256";
  const std::string pulled_ = folder_.path() + "/pulled/sha256";
  std::map<std::string, int64_t> sizes_;
  BundleImage image_;
  std::atomic<bool> stopped_ = false;
};

TEST_F(ImageCopierTest, AllPlatformsAreCopiedBetweenRegistriesWithTheirDigests) {
  const testing::TestRegistry a;
  const testing::TestRegistry b;
  const std::string index = Index();
  const std::string digest = "@sha256:" + index;
  ImageCopier copier = Copier();
  EXPECT_EQ(ReasonOf(copier.ReadManifestOf(a.address() + "/types/x" + digest).status()),
            "IMAGE_COPY_FAILED");
  absl::Status pushed = copier.Push(image_, blobs_, a.address() + "/types/x" + digest);
  ASSERT_TRUE(pushed.ok()) << pushed;
  int64_t bytes = -1;
  const absl::Status pulled = copier.Pull(a.address() + "/types/x" + digest, image_.size(), pulled_,
                                          [&](int64_t now) { bytes = now; });
  ASSERT_TRUE(pulled.ok()) << pulled;
  EXPECT_GE(bytes, 0);
  for (const auto& [sha256, size] : sizes_) {
    const auto content = ReadFileBounded(absl::StrCat(pulled_, "/", sha256), 10'000);
    ASSERT_TRUE(content.ok()) << sha256;
    EXPECT_EQ(ToHex(Sha256::Of(*content)), sha256);
  }
  pushed = copier.Push(image_, pulled_, b.address() + "/outside/types/x" + digest);
  ASSERT_TRUE(pushed.ok()) << pushed;
  EXPECT_TRUE(copier.ReadManifestOf(b.address() + "/outside/types/x" + digest).ok());
  EXPECT_TRUE(copier.Push(image_, pulled_, b.address() + "/outside/types/x" + digest).ok());
}

TEST_F(ImageCopierTest, CredentialsAreThoseOfTheFile) {
  const testing::TestRegistry registry(/*demands_password=*/true);
  const std::string name = absl::StrCat(registry.address(), "/x@sha256:", Index());
  const std::string file = folder_.path() + "/auth.json";
  ASSERT_TRUE(WriteFileAtomically(file, "{}").ok());
  const absl::Status refused = Copier({.auth_file = file}).Push(image_, blobs_, name);
  EXPECT_EQ(ReasonOf(refused), "IMAGE_COPY_FAILED") << refused;
  EXPECT_EQ(std::string(refused.message()).find("time="), std::string::npos) << refused;
  ASSERT_TRUE(WriteFileAtomically(file, registry.Credentials()).ok());
  const absl::Status pushed = Copier({.auth_file = file}).Push(image_, blobs_, name);
  EXPECT_TRUE(pushed.ok()) << pushed;
}

TEST_F(ImageCopierTest, RegistryThatDoesNotAnswerIsGivenUp) {
  const testing::SilentRegistry registry;
  const std::string name = absl::StrCat(registry.address(), "/x@sha256:", Index());
  const absl::Status status = Copier({.stall_limit = absl::Seconds(1)}).Push(image_, blobs_, name);
  EXPECT_EQ(ReasonOf(status), "IMAGE_COPY_FAILED");
  EXPECT_NE(std::string(status.message()).find("nothing was sent or received for 1s"),
            std::string::npos)
      << status;
}

TEST_F(ImageCopierTest, InterruptEndsACopy) {
  const testing::SilentRegistry registry;
  stopped_ = true;
  const std::string name = absl::StrCat(registry.address(), "/x@sha256:", Index());
  EXPECT_TRUE(absl::IsCancelled(Copier().ReadManifestOf(name).status()));
}

TEST_F(ImageCopierTest, ImageThatIsLargerThanItsManifestSaysIsRefused) {
  const testing::TestRegistry registry;
  const std::string name = absl::StrCat(registry.address(), "/x@sha256:", Index());
  ASSERT_TRUE(Copier().Push(image_, blobs_, name).ok());
  const absl::Status status = Copier().Pull(name, 10, pulled_, [](int64_t) {});
  EXPECT_EQ(ReasonOf(status), "IMAGE_COPY_FAILED") << status;
  EXPECT_TRUE(fs::is_empty(pulled_));
}

// The files would be written to the root of the file system.
TEST_F(ImageCopierTest, FolderThatCannotBeCreatedIsNamed) {
  const std::string name = absl::StrCat("127.0.0.1:1/x@sha256:", Index());
  const std::string missing = folder_.path() + "/none";
  const auto pull = [&] { return Copier().Pull(name, 10, missing + "/sha256", [](int64_t) {}); };
  const auto push = [&] { return Copier().Push(image_, missing + "/sha256", name); };
  for (const absl::Status& status : {pull(), push()}) {
    EXPECT_EQ(ReasonOf(status), "IMAGE_COPY_FAILED");
    EXPECT_NE(std::string(status.message()).find("no folder can be created in " + missing),
              std::string::npos)
        << status;
  }
}

TEST_F(ImageCopierTest, CauseHasNoEscapedQuotes) {
  const absl::Status refused =
      Copier().ReadManifestOf(absl::StrCat("127.0.0.1:1/x@sha256:", std::string(64, 'a'))).status();
  EXPECT_NE(std::string(refused.message()).find("Get \"http"), std::string::npos) << refused;
  EXPECT_EQ(std::string(refused.message()).find('\\'), std::string::npos) << refused;
}

TEST_F(ImageCopierTest, MissingProgramIsNamed) {
  const absl::Status status = Copier({.program = "/none/skopeo"})
                                  .ReadManifestOf("127.0.0.1:1/x@sha256:" + Index())
                                  .status();
  EXPECT_EQ(ReasonOf(status), "IMAGE_COPY_FAILED");
  EXPECT_EQ(NextStepOf(status), "Install the program skopeo.");
}

}  // namespace
}  // namespace muster::cli
