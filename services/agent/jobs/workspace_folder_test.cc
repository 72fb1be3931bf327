#include "services/agent/jobs/workspace_folder.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "services/common/archive/tar_gz_writer.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// Collects the bytes of an archive.
class StringSink final : public ByteSink {
 public:
  absl::Status Write(std::string_view data) override {
    bytes.append(data);
    return absl::OkStatus();
  }
  std::string bytes;
};

class WorkspaceFolderTest : public ::testing::Test {
 protected:
  WorkspaceFolderTest() {
    fs::remove_all(top_);
    fs::create_directories(from_);
  }
  ~WorkspaceFolderTest() override { fs::remove_all(top_); }

  static void Write(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat info = {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  absl::StatusOr<WorkspaceArchive> Pack() {
    fs::remove(archive_);
    return PackWorkspace(PosixFileOps(), from_, archive_, [] { return false; });
  }
  absl::Status Unpack() {
    fs::remove_all(to_);
    return UnpackWorkspace(PosixFileOps(), archive_, to_);
  }
  // Writes an archive with one entry, and unpacks it.
  absl::Status UnpackFile(const std::string& path) {
    StringSink sink;
    const auto writer = TarGzWriter::Create(sink, {}).value();
    EXPECT_TRUE(writer->AddFile(path, "content").ok());
    EXPECT_TRUE(writer->Finish().ok());
    Write(archive_, sink.bytes);
    return Unpack();
  }

  const std::string top_ = ::testing::TempDir() + "/workspace-folder";
  const std::string from_ = top_ + "/from";
  const std::string to_ = top_ + "/to";
  const std::string archive_ = top_ + "/archive";
};

TEST_F(WorkspaceFolderTest, FilesAndFoldersAreKeptForAnyUser) {
  fs::create_directories(from_ + "/a/empty");
  Write(from_ + "/a/terraform.tfstate", "{}");
  Write(from_ + "/program", "#!");
  Write(from_ + "/with space \xc3\xbc", std::string(200'000, 'x'));
  chmod((from_ + "/program").c_str(), 0700);
  const auto packed = Pack();
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->size, static_cast<int64_t>(fs::file_size(archive_)));
  EXPECT_EQ(packed->omitted, 0);
  ASSERT_TRUE(Unpack().ok());
  EXPECT_EQ(ReadFile(to_ + "/a/terraform.tfstate"), "{}");
  EXPECT_EQ(ReadFile(to_ + "/with space \xc3\xbc"), std::string(200'000, 'x'));
  EXPECT_TRUE(fs::is_empty(to_ + "/a/empty"));
  EXPECT_EQ(ModeOf(to_), 0777);
  EXPECT_EQ(ModeOf(to_ + "/a"), 0777);
  EXPECT_EQ(ModeOf(to_ + "/program"), 0777);
  EXPECT_EQ(ModeOf(to_ + "/a/terraform.tfstate"), 0666);
}

TEST_F(WorkspaceFolderTest, EqualContentGivesEqualArchives) {
  fs::create_directories(from_ + "/b");
  Write(from_ + "/b/z", "1");
  Write(from_ + "/a", "2");
  const auto first = Pack();
  ASSERT_TRUE(Unpack().ok());
  fs::remove_all(from_);
  fs::rename(to_, from_);
  const auto second = Pack();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->sha256, second->sha256);
  Write(from_ + "/a", "3");
  EXPECT_NE(Pack()->sha256, first->sha256);
}

TEST_F(WorkspaceFolderTest, LinksPipesAndUnusualNamesAreOmitted) {
  Write(top_ + "/secret", "outside");
  fs::create_symlink("../secret", from_ + "/link");
  fs::create_symlink("..", from_ + "/folder-link");
  ASSERT_EQ(mkfifo((from_ + "/pipe").c_str(), 0600), 0);
  Write(from_ + "/line\nbreak", "1");
  fs::create_directories(from_ + "/\xff");
  Write(from_ + "/\xff/below", "1");
  Write(from_ + "/kept", "1");
  const auto packed = Pack();
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->omitted, 5);
  ASSERT_TRUE(Unpack().ok());
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator(to_), {}), 1);
  EXPECT_EQ(ReadFile(to_ + "/kept"), "1");
}

TEST_F(WorkspaceFolderTest, TooLargeOrMissingFoldersAreNotPacked) {
  ASSERT_EQ(truncate((Write(from_ + "/sparse", ""), from_ + "/sparse").c_str(), kMaxWorkspace + 1),
            0);
  EXPECT_EQ(ReasonOf(Pack().status()), "WORKSPACE_TOO_LARGE");
  fs::remove_all(from_);
  EXPECT_EQ(ReasonOf(Pack().status()), "WORKSPACE_NOT_SAVED");
}

TEST_F(WorkspaceFolderTest, OtherArchivesAreRefused) {
  EXPECT_TRUE(UnpackFile("a").ok());
  for (const char* path : {"../a", "/a", "a/../../b", "./a", "a//b"}) {
    EXPECT_EQ(ReasonOf(UnpackFile(path)), "WORKSPACE_UNAVAILABLE") << path;
  }
  EXPECT_FALSE(fs::exists(top_ + "/a"));
  Write(archive_, "no archive");
  EXPECT_EQ(ReasonOf(Unpack()), "WORKSPACE_UNAVAILABLE");
}

TEST_F(WorkspaceFolderTest, StopEndsAPack) {
  Write(from_ + "/file", std::string(size_t{1} << 20, 'x'));
  int asked = 0;
  const auto packed =
      PackWorkspace(PosixFileOps(), from_, archive_, [&] { return ++asked > 2; });  // in the file
  EXPECT_TRUE(absl::IsCancelled(packed.status())) << packed.status();
  EXPECT_EQ(asked, 3);
}

// Another attempt may succeed.
TEST_F(WorkspaceFolderTest, LackOfDescriptorsIsNoFaultOfTheFolder) {
  fs::create_directories(from_ + "/a/b/c");
  Write(from_ + "/a/b/c/file", "x");
  const int first = dup(STDIN_FILENO);  // the lowest free one
  ASSERT_GE(first, 0);
  close(first);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  int limited = 0;
  for (rlim_t more = 2; more <= 8; ++more) {  // one is for WhyTooLarge
    const rlimit few = {static_cast<rlim_t>(first) + more, before.rlim_max};
    fs::remove(archive_);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto packed = PackWorkspace(PosixFileOps(), from_, archive_, [] { return false; });
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (packed.ok()) continue;
    EXPECT_EQ(ReasonOf(packed.status()), "SYSTEM_LIMIT") << packed.status();
    ++limited;
  }
  EXPECT_GT(limited, 2);
  EXPECT_TRUE(Pack().ok());
}

}  // namespace
}  // namespace muster
