#include "services/agent/jobs/content_fetcher.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/agent/jobs/testing/memory_contents.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/blob/blob_test_util.h"
#include "services/common/errors/relay.h"

namespace muster {
namespace {

class ContentFetcherTest : public ::testing::Test {
 protected:
  ContentFetcherTest() { std::filesystem::remove(path_); }
  ~ContentFetcherTest() override { std::filesystem::remove(path_); }

  absl::Status Fetch(const v1::Command::File& file, absl::Duration patience = absl::Minutes(5)) {
    return ContentFetcher({.source = contents_,
                           .deployment = "d1",
                           .stopped = [this] { return stopped_; },
                           .wait = [this](absl::Duration) { ++waits_; },
                           .patience = patience})
        .Fetch(path_, file);
  }
  mode_t Mode() const {
    struct stat info = {};
    EXPECT_EQ(stat(path_.c_str(), &info), 0);
    return info.st_mode & 07777;
  }

  const std::string path_ = ::testing::TempDir() + "/fetched";
  testing::MemoryContents contents_;
  bool stopped_ = false;
  int waits_ = 0;
};

TEST_F(ContentFetcherTest, ContentIsReadInPartsAndReadableByAnyUser) {
  const std::string bytes = Pattern(2'500);
  v1::Command::File file = contents_.Add("data", bytes);
  ASSERT_TRUE(Fetch(file).ok());
  EXPECT_EQ(*ReadFileBounded(path_, 10'000), bytes);
  EXPECT_EQ(Mode(), 0444u);
  EXPECT_EQ(contents_.offsets(), (std::vector<int64_t>{0, 1'000, 2'000}));
  EXPECT_TRUE(absl::IsAlreadyExists(Fetch(file)));
  std::filesystem::remove(path_);
  file.set_executable(true);
  ASSERT_TRUE(Fetch(file).ok());
  EXPECT_EQ(Mode(), 0555u);
}

TEST_F(ContentFetcherTest, FailedReadIsRepeatedAtTheSameOffset) {
  const std::string bytes = Pattern(1'500);
  const v1::Command::File file = contents_.Add("data", bytes);
  contents_.FailWith({errors::RelayCutOff(), errors::JobsUnreachable()});
  ASSERT_TRUE(Fetch(file).ok());
  EXPECT_EQ(*ReadFileBounded(path_, 10'000), bytes);
  EXPECT_EQ(contents_.offsets(), (std::vector<int64_t>{0, 0, 0, 1'000}));
  EXPECT_EQ(waits_, 2);
}

TEST_F(ContentFetcherTest, UnreachableContentIsGivenUp) {
  const v1::Command::File file = contents_.Add("data", "bytes");
  contents_.FailWith({errors::JobsUnreachable()});
  const absl::Status status = Fetch(file, absl::ZeroDuration());
  EXPECT_EQ(ReasonOf(status), "CONTENT_UNREACHABLE");
  EXPECT_NE(status.message().find("the root relay cannot reach the jobs service"),
            std::string::npos)
      << status;
  EXPECT_EQ(waits_, 0);
}

TEST_F(ContentFetcherTest, ReadThatWouldFailAgainIsNotRepeated) {
  v1::Command::File file;
  file.set_path("data");
  file.set_sha256(std::string(32, 'x'));
  file.set_size(1);
  EXPECT_EQ(ReasonOf(Fetch(file)), "CONTENT_UNREACHABLE");
  EXPECT_EQ(contents_.offsets().size(), 1u);
}

TEST_F(ContentFetcherTest, OtherBytesThanTheSignedOnesAreRefused) {
  const std::string bytes = Pattern(1'500);
  const v1::Command::File file = contents_.Add("data", bytes);
  for (const std::string& other :
       {Pattern(1'500, 2), bytes.substr(0, 1'000), bytes + "x", std::string()}) {
    contents_.Replace(file, other);
    std::filesystem::remove(path_);
    EXPECT_EQ(ReasonOf(Fetch(file)), "CONTENT_DAMAGED") << other.size();
  }
}

TEST_F(ContentFetcherTest, StopEndsTheReads) {
  const v1::Command::File file = contents_.Add("data", "bytes");
  stopped_ = true;
  EXPECT_TRUE(absl::IsCancelled(Fetch(file)));
  EXPECT_TRUE(contents_.offsets().empty());
}

}  // namespace
}  // namespace muster
