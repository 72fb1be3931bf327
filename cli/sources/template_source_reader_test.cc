#include "cli/sources/template_source_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

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
  ASSERT_EQ(read->files.size(), 2);
  EXPECT_EQ(read->files[0].path(), "index.html");
  EXPECT_EQ(read->files[1].path(), "lib/run");
  EXPECT_TRUE(read->files[1].executable());
  EXPECT_EQ(read->source.kind(), "folder");
  EXPECT_EQ(read->source.sha256(), SourceDigest(read->files));
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
  Write("big", std::string(200'000, 'x'));
  ExpectRefused("big", "exceeds the limit of all files together");
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
