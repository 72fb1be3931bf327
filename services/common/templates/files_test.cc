#include "services/common/templates/files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

absl::Status Check(const std::vector<std::string>& paths) {
  google::protobuf::RepeatedPtrField<v1::Command::File> files;
  for (const std::string& path : paths) files.Add()->set_path(path);
  return CheckFiles(files);
}

TEST(FilesTest, PathsBelowTheFolderAreValid) {
  EXPECT_TRUE(Check({}).ok());
  EXPECT_TRUE(Check({".hidden", "main.sh", "roles/web.yaml", "roles/web/t\u00e4sks.yaml"}).ok());
  EXPECT_TRUE(Check({"a..b/c", std::string(255, 'b')}).ok());
}

TEST(FilesTest, OtherPathsAreRefused) {
  for (const std::string& path :
       {std::string(), std::string("/etc/passwd"), std::string("../x"), std::string("a/../../x"),
        std::string("a/./b"), std::string("a//b"), std::string("a/"), std::string("."),
        std::string("a\nb"), std::string("a\0b", 3), std::string("\xff"), std::string(256, 'a'),
        absl::StrCat(std::string(250, 'a'), "/", std::string(250, 'b'), "/", std::string(250, 'c'),
                     "/", std::string(250, 'd'), "/", std::string(250, 'e'))}) {
    EXPECT_EQ(ReasonOf(Check({path})), "INVALID_FILES") << path;
  }
}

TEST(FilesTest, EachFileIsThereOnceAndNoneIsAFolder) {
  EXPECT_EQ(ReasonOf(Check({"a", "a"})), "INVALID_FILES");
  EXPECT_EQ(ReasonOf(Check({"b", "a"})), "INVALID_FILES");
  EXPECT_EQ(ReasonOf(Check({"a", "a/b"})), "INVALID_FILES");
  EXPECT_EQ(ReasonOf(Check({"a", "a.b", "a/b"})), "INVALID_FILES");
  EXPECT_EQ(ReasonOf(Check({"a/b", "a/b/c/d"})), "INVALID_FILES");
  EXPECT_TRUE(Check({"a.b", "a/b", "a/c", "ab"}).ok());
}

TEST(FilesTest, ThereAreAtMost1000) {
  std::vector<std::string> paths;
  for (int i = 0; i < kMaxFiles; ++i) paths.push_back(absl::StrCat(10'000 + i));
  EXPECT_TRUE(Check(paths).ok());
  paths.push_back("a");
  EXPECT_EQ(ReasonOf(Check(paths)), "INVALID_FILES");
}

TEST(FilesTest, FileHasEitherAContentOrItsDigestAndSize) {
  google::protobuf::RepeatedPtrField<v1::Command::File> files;
  v1::Command::File& file = *files.Add();
  file.set_path("a");
  file.set_sha256(std::string(32, 'x'));
  file.set_size(7);
  EXPECT_TRUE(CheckFiles(files).ok());
  EXPECT_TRUE(IsStored(file));
  file.set_content("both");
  EXPECT_EQ(ReasonOf(CheckFiles(files)), "INVALID_FILES");
  file.clear_content();
  for (const int64_t size : {int64_t{-1}, int64_t{0}, kMaxContentSize + 1}) {
    file.set_size(size);
    EXPECT_EQ(ReasonOf(CheckFiles(files)), "INVALID_FILES") << size;
  }
  file.set_size(7);
  file.set_sha256("short");
  EXPECT_EQ(ReasonOf(CheckFiles(files)), "INVALID_FILES");
  file.clear_sha256();
  EXPECT_EQ(ReasonOf(CheckFiles(files)), "INVALID_FILES");
  file.clear_size();
  EXPECT_TRUE(CheckFiles(files).ok());
}

TEST(FilesTest, StoredContentsAreBoundedTogether) {
  google::protobuf::RepeatedPtrField<v1::Command::File> files;
  for (const char* path : {"a", "b"}) {
    v1::Command::File& file = *files.Add();
    file.set_path(path);
    file.set_sha256(std::string(32, 'x'));
    file.set_size(kMaxContentSize / 2);
  }
  EXPECT_TRUE(CheckFiles(files).ok());
  EXPECT_EQ(StoredBytes(files), kMaxContentSize);
  files[1].set_size(kMaxContentSize / 2 + 1);
  EXPECT_EQ(ReasonOf(CheckFiles(files)), "INVALID_FILES");
}

}  // namespace
}  // namespace muster
