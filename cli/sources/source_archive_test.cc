#include "cli/sources/source_archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "cli/sources/local_file.h"
#include "cli/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/archive/utf8_locale.h"
#include "services/common/base/error.h"
#include "services/common/base/printable.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

struct Entry {
  std::string path;
  std::string content = "x";
  unsigned type = AE_IFREG;
  unsigned mode = 0644;
  std::string link = "";
  std::string hard_link = "";
};

enum class Format { kZip, kTar, kTarGz };

// Writes what a stranger may pack.
std::string Pack(Format format, const std::vector<Entry>& entries) {
  const Utf8Locale utf8;
  const std::string path = ::testing::TempDir() + "/source-archive";
  archive* a = archive_write_new();
  if (format == Format::kZip) {
    archive_write_set_format_zip(a);
  } else {
    archive_write_set_format_pax_restricted(a);
    if (format == Format::kTarGz) archive_write_add_filter_gzip(a);
  }
  EXPECT_EQ(archive_write_open_filename(a, path.c_str()), ARCHIVE_OK);
  for (const Entry& entry : entries) {
    archive_entry* e = archive_entry_new();
    archive_entry_set_pathname(e, entry.path.c_str());
    archive_entry_set_filetype(e, entry.type);
    archive_entry_set_perm(e, entry.mode);
    if (!entry.link.empty()) archive_entry_set_symlink(e, entry.link.c_str());
    if (!entry.hard_link.empty()) archive_entry_set_hardlink(e, entry.hard_link.c_str());
    const bool has_content = entry.type == AE_IFREG && entry.hard_link.empty();
    archive_entry_set_size(e, has_content ? static_cast<la_int64_t>(entry.content.size()) : 0);
    EXPECT_GE(archive_write_header(a, e), ARCHIVE_WARN) << archive_error_string(a);
    if (has_content) archive_write_data(a, entry.content.data(), entry.content.size());
    archive_entry_free(e);
  }
  archive_write_close(a);
  archive_write_free(a);
  return path;
}

using Files = google::protobuf::RepeatedPtrField<v1::Command::File>;

// Returns the files with their contents.
absl::StatusOr<Files> Read(const std::string& path,
                           const SourceLimits& limits = {.bytes = int64_t{1} << 20},
                           ArchiveKind* kind = nullptr) {
  const TemporaryFolder contents;
  SourceFiles files("site.zip", limits, contents.path());
  const auto read = ReadSourceArchive(path, files);
  if (!read.ok()) return read.status();
  if (kind != nullptr) *kind = *read;
  auto list = files.Finish();
  if (!list.ok()) return list.status();
  EXPECT_TRUE(PutIntoCommand(limits.bytes + 100, *list).ok());
  return FilesOf(*list);
}

void ExpectRefused(const absl::Status& status, const std::string& entry, const std::string& why) {
  EXPECT_EQ(ReasonOf(status), "SOURCE_REFUSED") << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"" + Printable(entry) + "\" ")) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  EXPECT_NE(NextStepOf(status), "");
}

TEST(SourceArchiveTest, AllFormatsGiveTheSameFiles) {
  const std::vector<Entry> entries = {{"site/", "", AE_IFDIR, 0755},
                                      {"site/run", "#!/bin/sh", AE_IFREG, 0755},
                                      {"site/f\xc3\xbcr.html", std::string(100'000, 'y')},
                                      {"empty", ""}};
  for (const Format format : {Format::kZip, Format::kTar, Format::kTarGz}) {
    ArchiveKind kind;
    const auto files = Read(Pack(format, entries), {.bytes = 200'000}, &kind);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(kind == ArchiveKind::kZip, format == Format::kZip);
    ASSERT_EQ(files->size(), 3);
    EXPECT_EQ((*files)[0].path(), "empty");
    EXPECT_EQ((*files)[1].path(), "site/f\xc3\xbcr.html");
    EXPECT_EQ((*files)[1].content(), std::string(100'000, 'y'));
    EXPECT_EQ((*files)[2].path(), "site/run");
    EXPECT_TRUE((*files)[2].executable());
    EXPECT_FALSE((*files)[1].executable());
  }
}

TEST(SourceArchiveTest, PathsOfTarWithADotAreRelative) {
  const auto files = Read(Pack(Format::kTar, {{"./", "", AE_IFDIR, 0755}, {"./a/b"}}));
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->Get(0).path(), "a/b");
}

// The table of hostile entries.
TEST(SourceArchiveTest, HostileEntriesAreRefusedByName) {
  struct Case {
    Entry entry;
    std::string why;
  };
  const std::string deep = [] {
    std::string path;
    for (int i = 0; i < 40; ++i) path += "d/";
    return path + "f";
  }();
  for (const Format format : {Format::kZip, Format::kTar}) {
    for (const Case& c : std::vector<Case>{
             {{"/etc/passwd"}, "is not a relative path"},
             {{"../x"}, "is not a relative path"},
             {{"a/../../x"}, "is not a relative path"},
             {{"a//b"}, "is not a relative path"},
             {{"a\nb"}, "has a control character"},
             {{deep}, "levels of folders"},
             {{std::string(300, 'n')}, "has a name of more than 255 bytes"},
             {{"link", "", AE_IFLNK, 0777, "/etc/passwd"}, "is a symbolic link"},
             {{"set", "x", AE_IFREG, 04755}, "setuid or setgid"},
         }) {
      ExpectRefused(Read(Pack(format, {{"first"}, c.entry})).status(), c.entry.path, c.why);
    }
  }
  for (const Case& c : std::vector<Case>{
           {{"device", "", AE_IFCHR}, "is a device"},
           {{"disk", "", AE_IFBLK}, "is a device"},
           {{"pipe", "", AE_IFIFO}, "is a named pipe"},
           {{"hard", "", AE_IFREG, 0644, "", "first"}, "is a hard link"},
       }) {
    ExpectRefused(Read(Pack(Format::kTar, {{"first"}, c.entry})).status(), c.entry.path, c.why);
  }
}

TEST(SourceArchiveTest, FileThatOccursTwiceIsRefused) {
  ExpectRefused(Read(Pack(Format::kTar, {{"a"}, {"./a"}})).status(), "a", "occurs twice");
  EXPECT_EQ(ReasonOf(Read(Pack(Format::kTar, {{"a"}, {"a/b"}})).status()), "SOURCE_UNUSABLE");
}

TEST(SourceArchiveTest, NumbersAndSizesAreBounded) {
  std::vector<Entry> many;
  for (int i = 0; i < 12; ++i) many.push_back({"f" + std::to_string(i)});
  ExpectRefused(Read(Pack(Format::kZip, many), {.entries = 10, .bytes = 100}).status(), "f10",
                "more than 10 files and folders");
  ExpectRefused(Read(Pack(Format::kZip, many), {.files = 5, .bytes = 100}).status(), "f5",
                "more than 5 files");
  ExpectRefused(
      Read(Pack(Format::kTarGz, {{"a"}, {"big", std::string(100, 'z')}}), {.bytes = 100}).status(),
      "big", "the limit of all files together");
  std::vector<Entry> folders(20, {"d/", "", AE_IFDIR, 0755});
  ExpectRefused(Read(Pack(Format::kTar, folders), {.entries = 10, .bytes = 100}).status(), "d",
                "more than 10 files and folders");
}

TEST(SourceArchiveTest, BombsAreRefusedByTheirRatio) {
  const std::string zeros(int64_t{64} << 20, '\0');
  for (const Format format : {Format::kZip, Format::kTarGz}) {
    ExpectRefused(Read(Pack(format, {{"bomb", zeros}}), {.bytes = int64_t{1} << 30}).status(),
                  "bomb", "more than 100 times as large");
  }
}

TEST(SourceArchiveTest, OtherAndDamagedFilesAreUnusable) {
  const std::string path = ::testing::TempDir() + "/other";
  const auto reason = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    return ReasonOf(Read(path).status());
  };
  EXPECT_EQ(reason(""), "SOURCE_UNUSABLE");
  EXPECT_EQ(reason("hello"), "SOURCE_UNUSABLE");
  std::ifstream whole(Pack(Format::kTarGz, {{"a", std::string(5'000, 'q')}}), std::ios::binary);
  const std::string tar((std::istreambuf_iterator<char>(whole)), {});
  EXPECT_EQ(reason(tar.substr(0, tar.size() / 2)), "SOURCE_UNUSABLE");
  EXPECT_EQ(ReasonOf(Read("/dev/null").status()), "SOURCE_UNUSABLE");
  EXPECT_EQ(ReasonOf(Read("/none").status()), "FILE_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Read(Pack(Format::kZip, {{"d/", "", AE_IFDIR, 0755}})).status()),
            "SOURCE_UNUSABLE")
      << "no files";
}

TEST(SourceArchiveTest, PointerOfLfsIsRefused) {
  ExpectRefused(
      Read(Pack(Format::kTar, {{"big.bin", "version https://git-lfs.github.com/spec/v1\noid x\n"}}))
          .status(),
      "big.bin", "Git LFS");
}

}  // namespace
}  // namespace muster::cli
