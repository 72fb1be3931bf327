#include "services/aggregator/file_stream.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "services/aggregator/testing/test_state.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

using testing::TestState;

constexpr char kContent[] = "0123456789";

class FileStreamTest : public ::testing::Test {
 protected:
  FileStreamTest() {
    auto staged = state_.blobs().Stage("aa", -1);
    EXPECT_TRUE((*staged)->Append(kContent, Crc32c(kContent)).ok());
    EXPECT_TRUE((*staged)->Publish("runs/r/results/aa").ok());
    result_ = Genuine(KeyOf("n1"), kContent).result;
    result_.crc32c = Crc32c(kContent);
    result_.body.clear();
    result_.blob = "runs/r/results/aa";
  }

  // Returns the path of the only blob.
  std::string Path() {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(state_ / "blobs/blobs")) {
      if (entry.is_regular_file()) return entry.path();
    }
    return "";
  }

  // Reads the result to its end. Returns the bytes, or the reason of the error.
  std::string Read(int64_t offset) { return Read(StreamResult(state_.blobs(), result_, offset)); }

  std::string ReadArchive(int64_t offset) {
    ArchiveRecord archive;
    archive.blob = result_.blob;
    archive.size = result_.size;
    return Read(StreamArchive(state_.blobs(), "r", archive, offset));
  }

  static std::string Read(absl::StatusOr<std::unique_ptr<FileChunkSource>> stream) {
    if (!stream.ok()) return ReasonOf(stream.status());
    std::string bytes;
    for (;;) {
      v1::FileChunk chunk;
      const auto pull = (*stream)->Next(&chunk);
      if (!pull.ok()) return ReasonOf(pull.status());
      if (*pull == Pull::kEnd) return bytes;
      bytes += chunk.data();
    }
  }

  TestState state_;
  ResultRecord result_;
};

TEST_F(FileStreamTest, WholeResultIsReadFromAnyOffset) {
  EXPECT_EQ(Read(0), kContent);
  EXPECT_EQ(Read(4), "456789");
  EXPECT_EQ(Read(10), "");
  EXPECT_EQ(Read(11), "OFFSET_TOO_HIGH");
}

TEST_F(FileStreamTest, ChangedByteEndsTheStreamWithAnError) {
  std::fstream(Path(), std::ios::in | std::ios::out | std::ios::binary).put('X');
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
}

TEST_F(FileStreamTest, MissingEndEndsTheStreamWithAnError) {
  std::filesystem::resize_file(Path(), 9);
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
  EXPECT_EQ(Read(4), "RESULT_DAMAGED");
  EXPECT_EQ(Read(10), "RESULT_DAMAGED");  // at the end of what was committed
  EXPECT_EQ(ReadArchive(0), "ARCHIVE_DAMAGED");
  EXPECT_EQ(ReadArchive(10), "ARCHIVE_DAMAGED");
  EXPECT_EQ(ReadArchive(11), "OFFSET_TOO_HIGH");
}

TEST_F(FileStreamTest, MissingFileIsDamage) {
  std::filesystem::remove(Path());
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
  EXPECT_EQ(ReadArchive(0), "ARCHIVE_DAMAGED");
}

TEST_F(FileStreamTest, AddedByteEndsTheStreamWithAnError) {
  std::filesystem::resize_file(Path(), 11);
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
}

TEST_F(FileStreamTest, InlineResultIsRead) {
  result_ = Genuine(KeyOf("n1"), kContent).result;
  EXPECT_EQ(Read(3), "3456789");
}

}  // namespace
}  // namespace muster
