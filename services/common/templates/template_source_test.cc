#include "services/common/templates/template_source.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

void Add(const std::string& path, const std::string& content, bool executable,
         google::protobuf::RepeatedPtrField<v1::Command::File>* files) {
  v1::Command::File& file = *files->Add();
  file.set_path(path);
  file.set_content(content);
  file.set_executable(executable);
}

v1::Command::Source Source(const std::string& kind) {
  v1::Command::Source source;
  source.set_kind(kind);
  source.set_sha256(std::string(64, 'a'));
  if (kind != "git") return source;
  source.set_url("https://git.example/web");
  source.set_commit(std::string(40, 'b'));
  source.set_folder("site");
  return source;
}

TEST(TemplateSourceTest, DigestCoversPathsContentAndModes) {
  google::protobuf::RepeatedPtrField<v1::Command::File> files;
  Add("a", "1", false, &files);
  Add("b/c", "2", true, &files);
  const std::string digest = SourceDigest(files);
  // printf 'a\n1 - %s\nb/c\n1 x %s\n' $(printf 1 | sha256sum) ... | sha256sum
  EXPECT_EQ(digest, "8d5779a127b5be3283eca1b29adada764392a11142750e46d75f547c64ada22f");
  files[0].set_executable(true);
  EXPECT_NE(SourceDigest(files), digest);
  files[0].set_executable(false);
  files[0].set_path("d");
  EXPECT_NE(SourceDigest(files), digest);
  files[0].set_path("a");
  files[0].set_content("3");
  EXPECT_NE(SourceDigest(files), digest);
  files[0].set_content("1");
  EXPECT_EQ(SourceDigest(files), digest);
}

TEST(TemplateSourceTest, SourceSurvivesTheDocument) {
  for (const char* kind : {"folder", "zip", "tar", "git"}) {
    const v1::Command::Source source = Source(kind);
    EXPECT_EQ(WhyInvalidSource(source), "");
    const auto read = SourceFromJson(SourceToJson(source));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->SerializeAsString(), source.SerializeAsString());
  }
}

TEST(TemplateSourceTest, InvalidSourcesAreRefused) {
  const auto why = [](const std::string& kind, auto change) {
    v1::Command::Source source = Source(kind);
    change(source);
    EXPECT_FALSE(SourceFromJson(SourceToJson(source)).ok());
    return WhyInvalidSource(source);
  };
  EXPECT_NE(why("svn", [](auto&) {}), "");
  EXPECT_NE(why("zip", [](auto& s) { s.set_sha256("abc"); }), "");
  EXPECT_NE(why("zip", [](auto& s) { s.set_url("https://git.example/web"); }), "");
  for (const std::string& url : {"", "http://git.example/web", "ext::sh -c x", "https://a b"}) {
    EXPECT_NE(why("git", [&](auto& s) { s.set_url(url); }), "") << url;
  }
  EXPECT_NE(why("git", [](auto& s) { s.set_commit("main"); }), "");
  EXPECT_NE(why("git", [](auto& s) { s.set_folder("../a"); }), "");
  EXPECT_FALSE(SourceFromJson(nlohmann::json::array()).ok());
  EXPECT_FALSE(SourceFromJson({{"kind", 5}}).ok());
  EXPECT_FALSE(SourceFromJson({{"kind", "zip"}, {"other", "x"}}).ok());
}

}  // namespace
}  // namespace muster
