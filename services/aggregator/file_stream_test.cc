#include "services/aggregator/file_stream.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "services/aggregator/testing/test_state.h"
#include "services/aggregator/verify/damage.h"
#include "services/aggregator/verify/store_cursor.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/error.h"
#include "services/common/base/sha256.h"
#include "services/common/store/sqlite/fault_vfs.h"

namespace muster {
namespace {

using testing::TestState;

constexpr char kContent[] = "0123456789";
constexpr char kVerifier[] = "spiffe://f.muster/service/aggregator/main";

class FileStreamTest : public ::testing::Test {
 protected:
  FileStreamTest() {
    auto staged = state_.blobs().Stage("aa", -1);
    EXPECT_TRUE((*staged)->Append(kContent, Crc32c(kContent)).ok());
    EXPECT_TRUE((*staged)->Publish("runs/r/results/aa").ok());
    CommitResult command = Genuine(KeyOf("n1"), kContent);
    command.result.crc32c = Crc32c(kContent);
    command.result.sha256 = DigestBytes(Sha256::Of(kContent));
    command.result.body.clear();
    command.result.blob = "runs/r/results/aa";
    result_ = command.result;
    result_.generation = 1;
    state_.Plan({"n1"});
    state_.Apply(std::move(command));
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
  std::string Read(int64_t offset) {
    return Read(StreamResult(state_.blobs(), recorder_, result_, offset));
  }

  std::string ReadArchive(int64_t offset) {
    ArchiveRecord archive;
    archive.blob = result_.blob;
    archive.size = result_.size;
    archive.sha256 = result_.sha256;
    return Read(StreamArchive(state_.blobs(), recorder_, kRun, archive, offset));
  }

  // Makes the result's blob the archive of the run.
  void Seal() {
    ArchiveRecord archive;
    archive.blob = result_.blob;
    archive.size = result_.size;
    archive.sha256 = result_.sha256;
    const int64_t last_change = (**state_.store().GetRun(kRun)).last_change;
    EXPECT_TRUE(state_.Apply(SealRun{kRun, archive, last_change, 3'000'000}).changed);
  }

  void ChangeByte() {
    std::fstream(Path(), std::ios::in | std::ios::out | std::ios::binary).put('X');
  }

  // Returns the recorded damage of the result, after a verification that must record no other one.
  std::string Damage() {
    const std::string damage = state_.store().GetResult(KeyOf("n1"))->value().damage;
    const size_t audited = Audited();
    StoreCursor cursor(state_.store(), state_.blobs(), state_.clock, kVerifier, kRun);
    EXPECT_TRUE(cursor.Step(1000).ok());
    EXPECT_EQ(Audited(), audited);
    return damage;
  }

  size_t Audited() {
    AuditFilter filter;
    filter.kinds = {AuditKind::kDamage};
    return state_.store().Audit(filter, "", 100)->items.size();
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

  sqlite::FaultVfs vfs_;
  TestState state_;
  const DamageRecorder recorder_{state_.store(), state_.clock, "spiffe://f.muster/user/ann"};
  ResultRecord result_;
};

TEST_F(FileStreamTest, WholeResultIsReadFromAnyOffset) {
  EXPECT_EQ(Read(0), kContent);
  EXPECT_EQ(Read(4), "456789");
  EXPECT_EQ(Read(10), "");
  EXPECT_EQ(Read(11), "OFFSET_TOO_HIGH");
}

TEST_F(FileStreamTest, ChangedByteEndsTheStreamWithAnError) {
  ChangeByte();
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
  EXPECT_EQ(Damage(), "the CRC32C differs");
}

TEST_F(FileStreamTest, ChangedByteBeforeTheOffsetIsNotFound) {
  ChangeByte();
  EXPECT_EQ(Read(4), "456789");
  EXPECT_EQ(ReadArchive(4), "456789");
  EXPECT_EQ(Audited(), 0U);
}

TEST_F(FileStreamTest, ChangedByteOfAnArchiveEndsTheStreamWithAnError) {
  Seal();
  EXPECT_EQ(ReadArchive(0), kContent);
  ChangeByte();
  EXPECT_EQ(ReadArchive(0), "ARCHIVE_DAMAGED");
  EXPECT_EQ(state_.Run().archive.damage, "the SHA-256 differs");
}

TEST_F(FileStreamTest, MissingEndEndsTheStreamWithAnError) {
  std::filesystem::resize_file(Path(), 9);
  EXPECT_EQ(Read(11), "OFFSET_TOO_HIGH");
  EXPECT_EQ(Audited(), 0U);
  EXPECT_EQ(Read(4), "RESULT_DAMAGED");
  EXPECT_EQ(Damage(), "stored are 9 bytes instead of 10");
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
  EXPECT_EQ(Read(10), "RESULT_DAMAGED");  // at the end of what was committed
  EXPECT_EQ(Audited(), 1U);
}

TEST_F(FileStreamTest, MissingEndOfAnArchiveEndsTheStreamWithAnError) {
  Seal();
  std::filesystem::resize_file(Path(), 9);
  EXPECT_EQ(ReadArchive(11), "OFFSET_TOO_HIGH");
  EXPECT_EQ(ReadArchive(10), "ARCHIVE_DAMAGED");
  EXPECT_EQ(state_.Run().archive.damage, "stored are 9 bytes instead of 10");
  EXPECT_EQ(ReadArchive(0), "ARCHIVE_DAMAGED");
  EXPECT_EQ(Audited(), 1U);
}

TEST_F(FileStreamTest, MissingFileIsDamage) {
  Seal();
  std::filesystem::remove(Path());
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
  EXPECT_EQ(ReadArchive(0), "ARCHIVE_DAMAGED");
  EXPECT_EQ(state_.Run().archive.damage, "the stored file is missing");
  EXPECT_EQ(Damage(), "the stored file is missing");
}

TEST_F(FileStreamTest, AddedByteEndsTheStreamWithAnError) {
  std::filesystem::resize_file(Path(), 11);
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
  EXPECT_EQ(Damage(), "stored are 11 bytes instead of 10");
}

// The read began before the result was repaired.
TEST_F(FileStreamTest, DamageOfBytesThatWereRepairedIsNotRecorded) {
  auto stream = StreamResult(state_.blobs(), recorder_, result_, 0);
  ChangeByte();
  EXPECT_TRUE(recorder_.Record({result_.key, 1, result_.blob}, kWrongCrc32c)->changed);
  CommitResult again = Genuine(KeyOf("n1"), kContent);
  again.result.crc32c = result_.crc32c;
  again.result.sha256 = result_.sha256;
  EXPECT_EQ(state_.Apply(again).verdict, CommitResult::Verdict::kCommitted);
  EXPECT_EQ(Read(std::move(stream)), "RESULT_DAMAGED");
  EXPECT_EQ(Damage(), "");
}

TEST_F(FileStreamTest, DamageIsAnErrorAlsoIfItCannotBeRecorded) {
  ChangeByte();
  vfs_.FailAt(sqlite::Fault::kFullDisk, 1, true);
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
  vfs_.Clear();
  EXPECT_EQ(Audited(), 0U);
  EXPECT_EQ(Read(0), "RESULT_DAMAGED");
  EXPECT_EQ(Damage(), "the CRC32C differs");
}

TEST_F(FileStreamTest, InlineResultIsRead) {
  result_ = Genuine(KeyOf("n1"), kContent).result;
  EXPECT_EQ(Read(3), "3456789");
}

TEST_F(FileStreamTest, ShortInlineResultIsDamage) {
  result_ = Genuine(KeyOf("n1"), kContent).result;
  result_.body.resize(5);
  EXPECT_EQ(Read(7), "RESULT_DAMAGED");
}

}  // namespace
}  // namespace muster
