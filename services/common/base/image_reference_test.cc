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

}  // namespace
}  // namespace muster
