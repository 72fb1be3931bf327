#include "cli/sources/template_source_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/sources/local_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/templates/template_source.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

class TemplateSourceReaderTest : public ::testing::Test {
 protected:
  TemplateSourceReaderTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/lib");
    Write("index.html", "hello");
    Write("lib/run", "#!/bin/sh\n");
    chmod((folder_ + "/lib/run").c_str(), 0755);
  }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name) << content;
  }

  void ExpectRefused(const std::string& entry, const std::string& why) {
    const absl::Status status = ReadTemplateSource(folder_, {}).status();
    EXPECT_EQ(ReasonOf(status), "SOURCE_REFUSED") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("\"" + entry + "\" " + why));
  }

  const std::string folder_ = ::testing::TempDir() + "/source";
};

TEST_F(TemplateSourceReaderTest, FolderIsReadSortedWithItsDigest) {
  const auto read = ReadTemplateSource(folder_, {});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->files.size(), 2u);
  EXPECT_EQ(read->files[0].file.path(), "index.html");
  EXPECT_EQ(read->files[0].source, folder_ + "/index.html");
  EXPECT_EQ(read->files[1].file.path(), "lib/run");
  EXPECT_TRUE(read->files[1].file.executable());
  EXPECT_EQ(read->source.kind(), "folder");
  EXPECT_EQ(read->source.sha256(), SourceDigest(FilesOf(read->files)));
  EXPECT_EQ(WhyInvalidSource(read->source), "");
}

TEST_F(TemplateSourceReaderTest, LinksAndOtherFilesOfAFolderAreRefused) {
  ASSERT_EQ(symlink("/etc/passwd", (folder_ + "/link").c_str()), 0);
  ExpectRefused("link", "is a symbolic link");
  std::filesystem::remove(folder_ + "/link");
  ASSERT_EQ(symlink("/etc", (folder_ + "/dir").c_str()), 0);
  ExpectRefused("dir", "is a symbolic link");
  std::filesystem::remove(folder_ + "/dir");
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  ExpectRefused("pipe", "is not a regular file");
  std::filesystem::remove(folder_ + "/pipe");
  Write("big", "");
  std::filesystem::resize_file(folder_ + "/big", (uint64_t{1} << 30) + 1);  // sparse
  ExpectRefused("big", "exceeds the limit of all files together");
}

TEST_F(TemplateSourceReaderTest, FilesOfAnArchiveAreKeptUntilTheyAreSent) {
  Write("lib/large", std::string(300'000, 'y'));
  const std::string archive = ::testing::TempDir() + "/source.tar";
  ASSERT_EQ(std::system(("tar -C " + folder_ + " -cf " + archive + " .").c_str()), 0);
  auto folder = ReadTemplateSource(folder_, {});
  auto read = ReadTemplateSource(archive, {});
  ASSERT_TRUE(folder.ok() && read.ok()) << folder.status() << read.status();
  EXPECT_EQ(read->source.kind(), "tar");
  EXPECT_EQ(read->source.sha256(), folder->source.sha256());
  ASSERT_TRUE(PutIntoCommand(1'000, read->files).ok());
  EXPECT_EQ(read->files[0].file.content(), "hello");
  EXPECT_EQ(read->files[1].file.path(), "lib/large");
  EXPECT_EQ(read->files[1].file.size(), 300'000);
  EXPECT_EQ(std::filesystem::file_size(read->files[1].source), 300'000u);
  const std::string contents = read->contents->path();
  EXPECT_EQ(SourceDigest(FilesOf(read->files)), folder->source.sha256());
  read->contents.reset();
  EXPECT_FALSE(std::filesystem::exists(contents));
}

TEST_F(TemplateSourceReaderTest, OnlyAdmittedHostsAreAsked) {
  GitOptions git;
  git.hosts = {"git.example"};
  git.program = "/none";
  const absl::Status other = ReadTemplateSource("git+https://h.example/w@main", git).status();
  EXPECT_EQ(ReasonOf(other), "SOURCE_UNUSABLE");
  EXPECT_THAT(std::string(other.message()), HasSubstr("h.example is none of the admitted ones"));
  const absl::Status missing = ReadTemplateSource("git+https://Git.Example/w@main", git).status();
  EXPECT_EQ(ReasonOf(missing), "GIT_FAILED") << missing;
}

}  // namespace
}  // namespace muster::cli
