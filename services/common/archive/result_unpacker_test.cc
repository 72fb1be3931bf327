#include "services/common/archive/result_unpacker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "services/common/archive/test_support.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

UnpackCheck Check(const std::string& bytes, const UnpackLimits& limits = {}) {
  PieceSource source(bytes, 5000);
  const auto check = CheckTarGz(source, limits);
  EXPECT_TRUE(check.ok()) << check.status();
  return check.value_or(UnpackCheck{.why = "error"});
}

std::string WhyNot(const std::vector<Member>& members, const UnpackLimits& limits = {}) {
  const UnpackCheck check = Check(Gzip(MakeTar(members)), limits);
  return check.ok ? "ok" : check.why;
}

class Recorder : public UnpackVisitor {
 public:
  absl::Status Folder(std::string_view path) override {
    files.emplace_back(absl::StrCat(std::string(path), "/"), "");
    return absl::OkStatus();
  }
  absl::Status BeginFile(std::string_view path, std::string_view, int64_t, bool) override {
    files.emplace_back(path, "");
    return absl::OkStatus();
  }
  absl::Status Data(std::string_view data) override {
    files.back().second.append(data);
    return absl::OkStatus();
  }
  absl::Status EndFile() override { return absl::OkStatus(); }
  std::vector<std::pair<std::string, std::string>> files;
};

std::vector<std::pair<std::string, std::string>> Unpack(const std::vector<Member>& members) {
  const std::string bytes = Gzip(MakeTar(members));
  EXPECT_TRUE(Check(bytes).ok) << Check(bytes).why;
  PieceSource source(bytes, 100);
  Recorder recorder;
  const absl::Status status = UnpackTarGz(source, {}, recorder);
  EXPECT_TRUE(status.ok()) << status;
  return recorder.files;
}

TEST(ResultUnpackerTest, ValidTarIsUnpacked) {
  EXPECT_THAT(Unpack({{.name = "./", .type = '5'},
                      {.name = "./logs/", .type = '5'},
                      {.name = "./logs/a b.log", .content = "one"},
                      {.name = "größe.txt", .content = "two"},
                      {.name = ".hidden", .content = ""},
                      {.name = std::string(150, 'n'), .content = "three"}}),
              ElementsAre(Pair("logs/", ""), Pair("logs/a b.log", "one"), Pair("größe.txt", "two"),
                          Pair(".hidden", ""), Pair(std::string(150, 'n'), "three")));
}

TEST(ResultUnpackerTest, CheckCountsFilesAndBytes) {
  const UnpackCheck check =
      Check(Gzip(MakeTar({{.name = "a", .content = "12345"}, {.name = "b", .content = "678"}})));
  EXPECT_TRUE(check.ok);
  EXPECT_EQ(check.files, 2);
  EXPECT_EQ(check.bytes, 8);
}

TEST(ResultUnpackerTest, FilesOfOneNameGetDifferentPaths) {
  EXPECT_THAT(Unpack({{.name = "d/a", .content = "1"},
                      {.name = "d//a", .content = "2"},
                      {.name = "d/a~2", .content = "3"},
                      {.name = "d/\x01", .content = "4"},
                      {.name = "d/\x02", .content = "5"}}),
              ElementsAre(Pair("d/a", "1"), Pair("d/a~2", "2"), Pair("d/a~2~2", "3"),
                          Pair("d/_", "4"), Pair("d/_~2", "5")));
}

TEST(ResultUnpackerTest, NamesThatLeaveTheirFolderAreRefused) {
  EXPECT_THAT(WhyNot({{.name = "ok"}, {.name = "../up"}}), HasSubstr("leaves its folder"));
  EXPECT_THAT(WhyNot({{.name = "a/../../up"}}), HasSubstr("leaves its folder"));
  EXPECT_THAT(WhyNot({{.name = "a/..", .type = '5'}}), HasSubstr("leaves its folder"));
  EXPECT_THAT(WhyNot({{.name = "/etc/passwd"}}), HasSubstr("absolute"));
  EXPECT_EQ(WhyNot({{.name = "a..b"}}), "ok");
  EXPECT_EQ(WhyNot({{.name = "..."}}), "ok");
}

TEST(ResultUnpackerTest, OnlyFilesAndFoldersAreAccepted) {
  EXPECT_THAT(WhyNot({{.name = "a", .type = '2', .link = "/etc"}}), HasSubstr("symbolic link: a"));
  EXPECT_THAT(WhyNot({{.name = "a"}, {.name = "b", .type = '1', .link = "a"}}),
              HasSubstr("hard link: b"));
  EXPECT_THAT(WhyNot({{.name = "a", .type = '3'}}), HasSubstr("device"));
  EXPECT_THAT(WhyNot({{.name = "a", .type = '4'}}), HasSubstr("device"));
  EXPECT_THAT(WhyNot({{.name = "a", .type = '6'}}), HasSubstr("pipe"));
  EXPECT_THAT(WhyNot({{.name = "a", .mode = 04755}}), HasSubstr("setuid"));
  EXPECT_THAT(WhyNot({{.name = "a", .mode = 02755}}), HasSubstr("setgid"));
}

TEST(ResultUnpackerTest, NameThatIsFileAndFolderIsRefused) {
  EXPECT_THAT(WhyNot({{.name = "a"}, {.name = "a/b"}}), HasSubstr("both a file and a folder"));
  EXPECT_THAT(WhyNot({{.name = "a/b"}, {.name = "a"}}), HasSubstr("both a file and a folder"));
  EXPECT_THAT(WhyNot({{.name = "a"}, {.name = "a", .type = '5'}}), HasSubstr("both a file"));
}

TEST(ResultUnpackerTest, LimitsAreEnforced) {
  std::string deep = "f";
  for (int i = 0; i < 40; ++i) deep = "d/" + deep;
  EXPECT_THAT(WhyNot({{.name = deep}}), HasSubstr("too deeply nested folders"));
  EXPECT_THAT(WhyNot({{.name = std::string(256, 'x')}}), HasSubstr("too long a name"));
  EXPECT_EQ(WhyNot({{.name = std::string(255, 'x')}}), "ok");
  std::string wide;
  for (int i = 0; i < 20; ++i) wide += std::string(60, 'w') + "/";
  EXPECT_THAT(WhyNot({{.name = wide + "f"}}), HasSubstr("too long a path"));
  EXPECT_THAT(
      WhyNot({{.name = "a", .content = "12345"}, {.name = "b", .content = "6"}}, {.max_bytes = 5}),
      HasSubstr("more than 5 bytes"));
  EXPECT_THAT(WhyNot({{.name = "a/b/c"}}, {.max_entries = 2}), HasSubstr("more than 2 files"));
}

TEST(ResultUnpackerTest, TooManyEntriesAreRefused) {
  std::vector<Member> members(100'000);
  for (size_t i = 0; i < members.size(); ++i) members[i].name = absl::StrCat("f", i);
  EXPECT_THAT(WhyNot(members), HasSubstr("more than 65536 files and folders"));
}

TEST(ResultUnpackerTest, GzipBombIsRefused) {
  EXPECT_THAT(WhyNot({{.name = "zeros", .content = std::string(size_t{20} << 20, '\0')}}),
              HasSubstr("more than 100 times its size"));
  // Small files may have a higher ratio.
  EXPECT_EQ(WhyNot({{.name = "zeros", .content = std::string(1 << 20, '\0')}}), "ok");
}

TEST(ResultUnpackerTest, IncompleteGzipTarIsRefused) {
  const std::string good = Gzip(MakeTar({{.name = "a", .content = std::string(9000, 'x')}}));
  EXPECT_TRUE(Check(good).ok);
  for (const std::string& bad :
       {std::string(), std::string("text"), Gzip("no tar at all"), Gzip(""),
        good.substr(0, good.size() - 20), good.substr(0, 15), Gzip(MakeTar({})),
        Gzip(std::string(10240, '\0')), MakeTar({{.name = "a"}})}) {
    const UnpackCheck check = Check(bad);
    EXPECT_FALSE(check.ok) << bad.size();
    EXPECT_NE(check.why, "");
  }
}

TEST(ResultUnpackerTest, ErrorOfTheSourceIsReturned) {
  const std::string good = Gzip(MakeTar({{.name = "a", .content = std::string(9000, 'x')}}));
  PieceSource source(good.substr(0, 20), 10, absl::UnavailableError("gone"));
  EXPECT_EQ(CheckTarGz(source).status(), absl::UnavailableError("gone"));
}

TEST(ResultUnpackerTest, UnpackStopsAtTheLimitsOfTheCheck) {
  PieceSource source(Gzip(MakeTar({{.name = "a", .type = '2', .link = "b"}})));
  Recorder recorder;
  EXPECT_TRUE(absl::IsInvalidArgument(UnpackTarGz(source, {}, recorder)));
  EXPECT_TRUE(recorder.files.empty());
}

}  // namespace
}  // namespace muster
