#include "services/common/base/secret_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class SecretFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "secret_file_test";
  const std::string path_ = folder_ / "key.pem";
};

TEST_F(SecretFileTest, RoundTripWithMode0600AndNothingElseLeft) {
  const std::string content("k\0y", 3);
  ASSERT_TRUE(WriteFileAtomically(path_, "older and longer").ok());
  ASSERT_TRUE(WriteFileAtomically(path_, content).ok());
  EXPECT_EQ(ReadSecretFile(path_).value(), content);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms{0600});
  EXPECT_EQ(Names(), std::vector<std::string>{"key.pem"});
}

TEST_F(SecretFileTest, PublicFilesMayHaveAnotherMode) {
  ASSERT_TRUE(WriteFileAtomically(path_, "certificate", 0644).ok());
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms{0644});
}

TEST_F(SecretFileTest, AFailedWriteLeavesNothing) {
  EXPECT_EQ(WriteFileAtomically(folder_ / "none" / "key.pem", "x").code(),
            absl::StatusCode::kNotFound);
  fs::create_directory(path_);
  EXPECT_FALSE(WriteFileAtomically(path_, "x").ok());  // a folder is in the way
  EXPECT_EQ(Names(), std::vector<std::string>{"key.pem"});
}

TEST_F(SecretFileTest, RefusesASecretThatOthersCanReach) {
  for (const mode_t mode : {0640, 0604, 0620, 0601}) {
    ASSERT_TRUE(WriteFileAtomically(path_, "k", mode).ok());
    const auto secret = ReadSecretFile(path_);
    EXPECT_EQ(ReasonOf(secret.status()), "SECRET_FILE_EXPOSED") << std::oct << mode;
    EXPECT_NE(NextStepOf(secret.status()).find("chmod 600 " + path_), std::string::npos);
  }
  ASSERT_TRUE(WriteFileAtomically(path_, "k", 0400).ok());
  EXPECT_TRUE(ReadSecretFile(path_).ok());
}

TEST_F(SecretFileTest, ExposedFileOfAnotherKindFailsWithTheErrorOfTheCheck) {
  ASSERT_TRUE(WriteFileAtomically(path_, "root:x:0:0", 0644).ok());
  const auto rejected = ReadSecretFile(
      path_, [](std::string_view) { return absl::InvalidArgumentError("not a token"); });
  EXPECT_EQ(rejected.status().message(), "not a token");
  const auto exposed = ReadSecretFile(path_, [](std::string_view) { return absl::OkStatus(); });
  EXPECT_EQ(ReasonOf(exposed.status()), "SECRET_FILE_EXPOSED");
  EXPECT_NE(NextStepOf(exposed.status()).find("chmod 600 " + path_), std::string::npos);
}

TEST_F(SecretFileTest, RefusesLinksAndPipes) {
  ASSERT_TRUE(WriteFileAtomically(path_, "k").ok());
  const std::string link = folder_ / "link";
  fs::create_symlink(path_, link);
  EXPECT_EQ(ReasonOf(ReadSecretFile(link).status()), "SECRET_FILE_EXPOSED");
  EXPECT_EQ(ReadFileBounded(link, 10).value(), "k");
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReasonOf(ReadSecretFile(pipe).status()), "SECRET_FILE_EXPOSED");
}

TEST_F(SecretFileTest, WritingReplacesALink) {
  const std::string elsewhere = folder_ / "elsewhere";
  ASSERT_TRUE(WriteFileAtomically(elsewhere, "untouched").ok());
  fs::create_symlink(elsewhere, path_);
  ASSERT_TRUE(WriteFileAtomically(path_, "new").ok());
  EXPECT_EQ(ReadSecretFile(elsewhere).value(), "untouched");
  EXPECT_EQ(ReadSecretFile(path_).value(), "new");
}

TEST_F(SecretFileTest, RefusesASecretOfAnotherUser) {
  ASSERT_TRUE(WriteFileAtomically(path_, "k").ok());
  if (chown(path_.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "may not give a file away here";
  EXPECT_EQ(ReasonOf(ReadSecretFile(path_).status()), "SECRET_FILE_EXPOSED");
}

TEST_F(SecretFileTest, BoundedReads) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(100, 'x')).ok());
  EXPECT_EQ(ReadFileBounded(path_, 100).value().size(), 100u);
  const auto large = ReadFileBounded(path_, 99);
  EXPECT_EQ(ReasonOf(large.status()), "FILE_TOO_LARGE");
  EXPECT_EQ(ReadFileBounded(folder_ / "none", 9).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(ReadFileBounded(folder_, 9).status()), "NOT_A_FILE");
  EXPECT_EQ(ReasonOf(ReadFileBounded("/dev/zero", 9).status()), "NOT_A_FILE");
  EXPECT_TRUE(ReadFileBounded("/proc/self/status", 1 << 20).ok());  // its size reads as 0
}

}  // namespace
}  // namespace muster
