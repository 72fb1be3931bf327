#include "cli/rpc/download.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "cli/supervisor/test_folder.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"

namespace muster::cli {
namespace {

// Returns `content` from an offset on, and fails after `break_after` bytes.
class BreakingSource : public ByteSource {
 public:
  BreakingSource(std::string content, size_t break_after)
      : content_(std::move(content)), left_(break_after) {}

  absl::StatusOr<size_t> Read(std::span<char> buffer) override {
    if (content_.empty()) return 0;
    if (left_ == 0) return absl::UnavailableError("stream closed");
    const size_t count = std::min({buffer.size(), content_.size(), left_, size_t{7}});
    std::memcpy(buffer.data(), content_.data(), count);
    content_.erase(0, count);
    left_ -= count;
    return count;
  }

 private:
  std::string content_;
  size_t left_;
};

class DownloadTest : public ::testing::Test {
 protected:
  Download Get(const std::string& content, size_t break_after = SIZE_MAX) {
    return {.path = folder_ / "a.tar.gz",
            .size = static_cast<int64_t>(content_.size()),
            .sha256 = DigestBytes(Sha256::Of(content_)),
            .open =
                [=, this](int64_t offset) {
                  opened_.push_back(offset);
                  return std::make_unique<BreakingSource>(
                      content.substr(static_cast<size_t>(offset)), break_after);
                },
            .on_progress = [this](int64_t done) { progress_ = done; }};
  }

  std::string Content(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  bool Exists(const std::string& name) { return std::filesystem::exists(folder_ / name); }

  const std::string content_ = std::string(100, 'x') + "the end";
  const supervisor::TestFolder folder_;
  std::vector<int64_t> opened_;
  int64_t progress_ = 0;
};

TEST_F(DownloadTest, UninterruptedDownloadWritesTheFile) {
  ASSERT_TRUE(Fetch(Get(content_)).ok());
  EXPECT_EQ(Content("a.tar.gz"), content_);
  EXPECT_EQ(progress_, 107);
  EXPECT_FALSE(Exists("a.tar.gz.part"));
}

TEST_F(DownloadTest, BrokenDownloadIsResumed) {
  EXPECT_EQ(Fetch(Get(content_, 35)).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(Exists("a.tar.gz"));
  EXPECT_TRUE(Exists("a.tar.gz.part"));
  ASSERT_TRUE(Fetch(Get(content_)).ok());
  EXPECT_EQ(opened_, (std::vector<int64_t>{0, 35}));
  EXPECT_EQ(Content("a.tar.gz"), content_);
}

TEST_F(DownloadTest, PartOfAnotherFileIsFetchedAgain) {
  std::ofstream(folder_ / "a.tar.gz.part") << "not its beginning";
  ASSERT_TRUE(Fetch(Get(content_)).ok());
  EXPECT_EQ(opened_, (std::vector<int64_t>{17, 0}));
  EXPECT_EQ(Content("a.tar.gz"), content_);

  std::filesystem::remove(folder_ / "a.tar.gz");
  std::ofstream(folder_ / "a.tar.gz.part") << std::string(1000, 'y');
  ASSERT_TRUE(Fetch(Get(content_)).ok());
  EXPECT_EQ(Content("a.tar.gz"), content_);
}

TEST_F(DownloadTest, WrongContentKeepsTheOldFile) {
  std::ofstream(folder_ / "a.tar.gz") << "the old one";
  std::string wrong = content_;
  wrong[50] = 'y';
  EXPECT_EQ(ReasonOf(Fetch(Get(wrong))), "DIGEST_MISMATCH");
  EXPECT_EQ(ReasonOf(Fetch(Get(content_ + "more"))), "SIZE_MISMATCH");
  EXPECT_EQ(ReasonOf(Fetch(Get(content_.substr(0, 50)))), "SIZE_MISMATCH");
  EXPECT_EQ(Content("a.tar.gz"), "the old one");
  EXPECT_FALSE(Exists("a.tar.gz.part"));
}

TEST_F(DownloadTest, OtherFileIsKeptWithoutOverwrite) {
  std::ofstream(folder_ / "a.tar.gz") << "another one";
  Download download = Get(content_);
  download.overwrite = false;
  EXPECT_EQ(ReasonOf(Fetch(download)), "FILE_EXISTS");
  EXPECT_EQ(Content("a.tar.gz"), "another one");
  EXPECT_TRUE(opened_.empty());
  download.overwrite = true;
  ASSERT_TRUE(Fetch(download).ok());
  download.overwrite = false;
  EXPECT_TRUE(Fetch(download).ok()) << "the same content";
  EXPECT_EQ(Content("a.tar.gz"), content_);
}

TEST_F(DownloadTest, OnlyAFolderThatDoesNotExistIsReportedAsMissing) {
  std::ofstream(folder_ / "file") << "content";
  std::filesystem::create_symlink("loop", folder_ / "loop");  // as a folder without permission
  const auto error = [this](const std::string& path) {
    Download download = Get(content_);
    download.path = folder_ / path;
    download.overwrite = false;
    const absl::Status status = Fetch(download);
    return ReasonOf(status) + " " + std::string(status.message());
  };
  EXPECT_EQ(error("none/a"), "FILE_NOT_FOUND folder " + (folder_ / "none") + " not found");
  EXPECT_EQ(error("none/"), "FILE_NOT_FOUND folder " + (folder_ / "none/") + " not found");
  EXPECT_EQ(error("file/a"),
            "FILE_NOT_FOUND open " + (folder_ / "file/a.part") + ": Not a directory");
  EXPECT_EQ(error("loop/a"),
            "IO_ERROR open " + (folder_ / "loop/a.part") + ": Too many levels of symbolic links");
  EXPECT_TRUE(opened_.empty());
}

TEST_F(DownloadTest, OutputThatIsNoRegularFileIsKept) {
  std::ofstream(folder_ / "target") << "the old one";
  std::filesystem::create_symlink("target", folder_ / "a.tar.gz");
  EXPECT_EQ(ReasonOf(Fetch(Get(content_))), "NOT_A_FILE");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "a.tar.gz"));

  std::filesystem::remove(folder_ / "a.tar.gz");
  ASSERT_EQ(mkfifo((folder_ / "a.tar.gz").c_str(), 0600), 0);
  EXPECT_EQ(ReasonOf(Fetch(Get(content_))), "NOT_A_FILE") << "without waiting for a reader";
  EXPECT_TRUE(std::filesystem::is_fifo(folder_ / "a.tar.gz"));

  std::filesystem::remove(folder_ / "a.tar.gz");
  std::filesystem::create_symlink("target", folder_ / "a.tar.gz.part");
  EXPECT_EQ(ReasonOf(Fetch(Get(content_))), "NOT_A_FILE");
  EXPECT_EQ(Content("target"), "the old one");
  EXPECT_TRUE(opened_.empty());
}

TEST_F(DownloadTest, ExistingFileIsNotFetched) {
  std::ofstream(folder_ / "a.tar.gz") << content_;
  ASSERT_TRUE(Fetch(Get(content_)).ok());
  EXPECT_TRUE(opened_.empty());
  EXPECT_EQ(progress_, 107);
}

}  // namespace
}  // namespace muster::cli
