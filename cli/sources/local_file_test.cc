#include "cli/sources/local_file.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/templates/files.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

class LocalFileTest : public ::testing::Test {
 protected:
  LocalFileTest() { std::filesystem::create_directories(folder_); }
  ~LocalFileTest() override { std::filesystem::remove_all(folder_); }

  LocalFile Write(const std::string& name, const std::string& content) const {
    LocalFile local{.file = {}, .source = absl::StrCat(folder_, "/", name)};
    std::ofstream(local.source, std::ios::binary) << content;
    local.file.set_path(name);
    local.file.set_size(static_cast<int64_t>(content.size()));
    local.file.set_sha256(DigestBytes(Sha256::Of(content)));
    return local;
  }

  const std::string folder_ = ::testing::TempDir() + "/local_file";
};

TEST_F(LocalFileTest, SmallestFilesAreInTheCommandAsFarAsTheyFit) {
  const std::vector<LocalFile> list = {Write("a", std::string(1'000, 'a')),
                                       Write("b", std::string(10, 'b')),
                                       Write("c", std::string(500, 'c'))};
  const auto stored_with = [&list](size_t bytes) {
    std::vector<LocalFile> files = list;
    EXPECT_TRUE(PutIntoCommand(bytes, files).ok());
    const auto in_command = FilesOf(files);
    EXPECT_LE(in_command.Get(0).content().size() + in_command.Get(1).content().size() +
                  in_command.Get(2).content().size(),
              bytes);
    EXPECT_TRUE(CheckFiles(in_command).ok());
    std::string paths;
    for (const v1::Command::File& file : in_command) {
      if (IsStored(file)) paths += file.path();
    }
    return paths;
  };
  EXPECT_EQ(stored_with(0), "abc");
  EXPECT_EQ(stored_with(14), "ac");
  EXPECT_EQ(stored_with(600), "a");
  EXPECT_EQ(stored_with(2'000), "");
}

TEST_F(LocalFileTest, FileThatHasChangedIsRefused) {
  std::vector<LocalFile> files = {Write("a", "one")};
  Write("a", "two");
  const absl::Status status = PutIntoCommand(100, files);
  EXPECT_EQ(ReasonOf(status), "SOURCE_UNUSABLE");
  EXPECT_THAT(std::string(status.message()), HasSubstr("has changed"));
}

}  // namespace
}  // namespace muster::cli
