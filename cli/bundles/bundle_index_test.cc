#include "cli/bundles/bundle_index.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster::cli {
namespace {

const std::string kA(64, 'a');
const std::string kB(64, 'b');

std::vector<BundleMember> Members() {
  return {{"oci-layout", 3, kB},
          {"documents/types/greet@1.0.0.json", 7, kB},
          {absl::StrCat("blobs/sha256/", kA), 5, kA}};
}

std::string Fault(const std::string& text) {
  const auto read = ParseBundleIndex(text, "site.tar");
  EXPECT_EQ(ReasonOf(read.status()), "BUNDLE_UNUSABLE") << text.substr(0, 300);
  return std::string(read.status().message());
}

TEST(BundleIndexTest, IndexIsReadAsItWasWrittenByPath) {
  const auto read = ParseBundleIndex(BundleIndexText(Members()), "site.tar");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ((*read)[0].path, absl::StrCat("blobs/sha256/", kA));
  EXPECT_EQ((*read)[1].size, 7);
  EXPECT_EQ((*read)[2].sha256, kB);
  EXPECT_EQ(DocumentOf((*read)[1].path, kTypeFolder), "greet@1.0.0");
  EXPECT_EQ(DocumentOf((*read)[1].path, kTemplateFolder), "");
}

TEST(BundleIndexTest, OnlyMembersOfTheFormatAreAccepted) {
  const std::string good = BundleIndexText({{"oci-layout", 3, kA}});
  ASSERT_TRUE(ParseBundleIndex(good, "site.tar").ok());
  for (const char* path :
       {"../oci-layout", "/oci-layout", "oci-layout/..", "documents/types/../../x@1.0.0.json",
        "documents/types/a/b@1.0.0.json", "documents/types/.a@1.0.0.json",
        "documents/types/a@1.0.json", "documents/types/a.json", "documents/types/@1.0.0.json",
        "documents/other/a@1.0.0.json", "bundle.json", "", "x", "index.json\\u0000",
        "blobs/sha256/../../x", "blobs/sha256/"}) {
    Fault(absl::StrReplaceAll(good, {{"\"oci-layout\"", absl::StrCat("\"", path, "\"")}}));
  }
  Fault(BundleIndexText({{absl::StrCat("blobs/sha256/", kA), 3, kB}}));
}

TEST(BundleIndexTest, RepeatedUnsortedAndMalformedMembersAreRefused) {
  Fault(BundleIndexText({{"oci-layout", 3, kA}, {"oci-layout", 3, kA}}));
  const std::string good = BundleIndexText(Members());
  Fault(absl::StrReplaceAll(good, {{"documents/types", "a"}}));
  Fault(absl::StrReplaceAll(
      good, {{"oci-layout", "index.json"}, {"documents/types/greet@1.0.0.json", "oci-layout"}}));
  for (const char* size : {"-3", "3.5", "\"3\"", "null", "18446744073709551615"}) {
    Fault(absl::StrReplaceAll(good, {{"\"size\": 3", absl::StrCat("\"size\": ", size)}}));
  }
  Fault(absl::StrReplaceAll(good, {{kB, std::string(64, 'B')}}));
  Fault("");
  Fault("[]");
  Fault(good.substr(0, good.size() - 3));
  Fault(absl::StrReplaceAll(good, {{"muster-bundle", "other"}}));
  Fault(absl::StrCat("{\"format\": \"muster-bundle\", \"x\": ", std::string(100'000, '[')));
}

TEST(BundleIndexTest, VersionOfADocumentIsSafeInAPath) {
  EXPECT_TRUE(IsDocumentVersion("greet@1.0.0-rc.1"));
  for (const char* text : {"", "greet", "@1.0.0", "greet@1.0", "../greet@1.0.0", "greet@../1.0.0",
                           "a/b@1.0.0", "greet@1.0.0/../x"}) {
    EXPECT_FALSE(IsDocumentVersion(text)) << text;
  }
}

TEST(BundleIndexTest, NewerVersionIsNamed) {
  const std::string newer =
      absl::StrReplaceAll(BundleIndexText(Members()), {{"\"version\": 1", "\"version\": 2"}});
  EXPECT_NE(Fault(newer).find("newer"), std::string::npos);
}

TEST(BundleIndexTest, MembersAndBytesAreBounded) {
  Fault(BundleIndexText({{"index.json", kMaxBundle, kA}, {"oci-layout", 1, kA}}));
  std::vector<BundleMember> many;
  for (size_t i = 0; i <= kMaxMembers; ++i) {
    many.push_back({absl::StrCat("documents/types/a@", i, ".0.0.json"), 1, kA});
  }
  EXPECT_NE(Fault(BundleIndexText(many)).find("more than 50000 members"), std::string::npos);
  EXPECT_NE(Fault(std::string(kMaxIndex + 1, ' ')).find("larger"), std::string::npos);
}

}  // namespace
}  // namespace muster::cli
