#include "services/common/templates/version.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(VersionTest, OnlySemanticVersionsAreVersions) {
  for (const char* good : {"0.0.0", "1.2.3", "10.20.30", "1.0.0-rc.1", "1.0.0-0", "1.0.0-a-b"}) {
    EXPECT_TRUE(IsVersion(good)) << good;
  }
  for (const char* bad :
       {"", "1", "1.2", "01.2.3", "1.2.3.4", "1.2.x", "v1.2.3", "1.2.3-", "1.2.3-01", "1.2.3+build",
        "1.2.3-a..b", "1.2.-3", "1.2.3-é", "1.2.1234567890"}) {
    EXPECT_FALSE(IsVersion(bad)) << bad;
  }
}

// The order of the examples of semver.org, section 11.
TEST(VersionTest, SortKeysHaveTheOrderOfPrecedence) {
  const std::vector<std::string> ordered = {"0.9.9",
                                            "1.0.0-1",
                                            "1.0.0-9",
                                            "1.0.0-10",
                                            "1.0.0-alpha",
                                            "1.0.0-alpha.1",
                                            "1.0.0-alpha.beta",
                                            "1.0.0-beta",
                                            "1.0.0-beta.2",
                                            "1.0.0-beta.11",
                                            "1.0.0-rc.1",
                                            "1.0.0",
                                            "1.0.1-0",
                                            "1.0.2",
                                            "1.2.0",
                                            "1.10.0",
                                            "2.0.0"};
  for (size_t i = 1; i < ordered.size(); ++i) {
    EXPECT_LT(VersionSortKey(ordered[i - 1]), VersionSortKey(ordered[i])) << ordered[i];
  }
}

TEST(VersionTest, ShortReferenceHasThePrefixOfItsVersionsOnly) {
  const auto reference = ParseVersionReference("web@1.2");
  ASSERT_TRUE(reference.has_value());
  EXPECT_EQ(reference->name, "web");
  EXPECT_EQ(reference->version, "");
  EXPECT_TRUE(VersionSortKey("1.2.7").starts_with(reference->key_prefix));
  EXPECT_FALSE(VersionSortKey("1.20.7").starts_with(reference->key_prefix));
  EXPECT_FALSE(VersionSortKey("11.2.7").starts_with(reference->key_prefix));
}

TEST(VersionTest, WholeReferenceHasAVersion) {
  const auto reference = ParseVersionReference("web@1.2.0-rc.1");
  ASSERT_TRUE(reference.has_value());
  EXPECT_EQ(reference->version, "1.2.0-rc.1");
  EXPECT_EQ(ParseVersionReference("web")->version, "");
  EXPECT_EQ(ParseVersionReference("web")->key_prefix, "");
}

TEST(VersionTest, OtherTextsAreNoReferences) {
  for (const char* bad :
       {"", "@1", "web@", "web@x", "web@1.2.3.4", "web@1.2.3+b", "a/b", "web@1@2"}) {
    EXPECT_FALSE(ParseVersionReference(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace muster
