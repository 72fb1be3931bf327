#include "services/common/base/image_reference.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

TEST(ImageReferenceTest, ReferencesByContentAreAccepted) {
  for (const std::string name : {"busybox", "busybox:1.36", "registry.example:5000/tools/ansible",
                                 "127.0.0.1:5000/a", "a/b/c_d-e.f:v1"}) {
    EXPECT_TRUE(IsImageByContent(name + "@" + kDigest)) << name;
  }
  EXPECT_TRUE(IsImageByContent(kDigest));
}

TEST(ImageReferenceTest, OtherReferencesAreRefused) {
  for (const std::string& reference : std::vector<std::string>{
           "", "busybox", "busybox:1.36", "@" + kDigest, "busybox@" + kDigest.substr(1),
           "busybox@" + kDigest + "0", "busybox@sha256:abc",
           "busybox@sha256:" + std::string(64, 'A'), "a@b@" + kDigest, kDigest + "\n"}) {
    EXPECT_FALSE(IsImageByContent(reference)) << reference;
  }
}

// A name becomes a part of the path of a request to Docker.
TEST(ImageReferenceTest, NamesThatChangeAPathAreRefused) {
  for (const std::string name : {"..", "a/../b", "a//b", "/a", "a/", ".", "a/.", "a?b", "a#b",
                                 "a%2fb", "a b", "a\\b", "-a"}) {
    EXPECT_FALSE(IsImageByContent(name + "@" + kDigest)) << name;
  }
  EXPECT_FALSE(IsImageByContent(std::string(500, 'a') + "@" + kDigest)) << "too long";
}

TEST(ImageReferenceTest, RegistryIsThatOfTheNameOrDockerHub) {
  EXPECT_EQ(RegistryOf("r.example/a/b@sha256:0"), "r.example");
  EXPECT_EQ(RegistryOf("127.0.0.1:5000/a"), "127.0.0.1:5000");
  EXPECT_EQ(RegistryOf("localhost/a"), "localhost");
  EXPECT_EQ(RegistryOf("alpine"), "docker.io");
  EXPECT_EQ(RegistryOf("team/a"), "docker.io");
  EXPECT_EQ(RegistryOf("index.docker.io/team/a"), "docker.io");
}

TEST(ImageReferenceTest, RepositoryHasNeitherRegistryNorTagNorDigest) {
  EXPECT_EQ(RepositoryOf("r.example:5000/a/b:v1@" + kDigest), "a/b");
  EXPECT_EQ(RepositoryOf("localhost/a"), "a");
  EXPECT_EQ(RepositoryOf("team/a@" + kDigest), "team/a");
  EXPECT_EQ(RepositoryOf("busybox:1.36@" + kDigest), "library/busybox");
  EXPECT_EQ(RepositoryOf("docker.io/busybox@" + kDigest), "library/busybox");
  EXPECT_EQ(DigestOf("busybox:1.36@" + kDigest), kDigest);
  EXPECT_EQ(DigestOf("busybox:1.36"), "");
}

TEST(ImageReferenceTest, NameInAnotherRegistryKeepsRepositoryAndDigest) {
  EXPECT_EQ(ImageInRegistry("r.example/a/b:v1@" + kDigest, "site:5000"),
            "site:5000/a/b@" + kDigest);
  EXPECT_EQ(ImageInRegistry("busybox@" + kDigest, "r.site/outside"),
            "r.site/outside/library/busybox@" + kDigest);
}

TEST(ImageReferenceTest, RegistryPrefixIsAHostWithRepositories) {
  for (const char* text : {"registry.site", "site:5000", "127.0.0.1:5000/a/b-c", "localhost/a"}) {
    EXPECT_TRUE(IsRegistryPrefix(text)) << text;
  }
  for (const std::string& text :
       {std::string(), std::string("/a"), std::string("r.site/"), std::string("r.site/../a"),
        std::string("https://r.site"), std::string("r.site/a:v1"), std::string("r.site/A"),
        std::string("r.site/a b"), std::string("--help"), std::string(256, 'a')}) {
    EXPECT_FALSE(IsRegistryPrefix(text)) << text;
  }
}

}  // namespace
}  // namespace muster
