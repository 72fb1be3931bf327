#include "services/relay/jobs/record_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "services/common/base/error.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

v1::JobRecord Output(int64_t sequence, const std::string& data) {
  v1::JobRecord record;
  record.set_node("n1");
  record.set_sequence(sequence);
  record.mutable_output()->set_data(data);
  return record;
}

class RecordLogTest : public ::testing::Test {
 protected:
  std::unique_ptr<RecordLog> Open() {
    seen_.clear();
    auto log = RecordLog::Open(disk_, "/records", [this](const v1::JobRecord& record) {
      seen_.push_back(record.output().data());
    });
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }

  SimulatedDisk disk_;
  std::vector<std::string> seen_;
};

TEST_F(RecordLogTest, RecordsAreReadFromAnyPositionOn) {
  const auto log = Open();
  std::vector<int64_t> positions;
  for (int i = 1; i <= 5; ++i) {
    positions.push_back(log->end());
    ASSERT_TRUE(log->Append(Output(i, std::string(1000, static_cast<char>('a' + i)))).ok());
  }
  ASSERT_TRUE(log->Sync().ok());
  const auto file = disk_.Open("/records", OpenMode::kRead);
  ASSERT_TRUE(file.ok());
  const auto read = ReadRecords(**file, positions[2], log->end(), 1'500);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->records.size(), 2U) << "until they are as much as was asked for";
  EXPECT_EQ(read->records[0].sequence(), 3);
  EXPECT_EQ(read->position, positions[4]);
  const auto rest = ReadRecords(**file, read->position, log->end(), 1 << 20);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->position, log->end());
}

TEST_F(RecordLogTest, APositionWithinARecordIsRefused) {
  const auto log = Open();
  ASSERT_TRUE(log->Append(Output(1, "hello")).ok());
  const auto file = disk_.Open("/records", OpenMode::kRead);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(ReasonOf(ReadRecords(**file, 3, log->end(), 100).status()), "INVALID_POSITION");
}

TEST_F(RecordLogTest, WhatWasCutOffIsDroppedAndWhatWasSyncedIsThere) {
  int64_t synced = 0;
  {
    const auto log = Open();
    ASSERT_TRUE(log->Append(Output(1, "kept")).ok());
    ASSERT_TRUE(log->Sync().ok());
    synced = log->end();
    ASSERT_TRUE(log->Append(Output(2, "half")).ok());
  }
  {
    const auto file = disk_.Open("/records", OpenMode::kReadWrite);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Truncate(synced + 11).ok());
  }
  const auto log = Open();
  EXPECT_EQ(seen_, std::vector<std::string>{"kept"});
  EXPECT_EQ(log->end(), synced);
  ASSERT_TRUE(log->Append(Output(2, "again")).ok());
  Open();
  EXPECT_EQ(seen_, (std::vector<std::string>{"kept", "again"}));
}

TEST_F(RecordLogTest, ABitThatFlippedEndsWhatIsBelieved) {
  int64_t first = 0;
  {
    const auto log = Open();
    ASSERT_TRUE(log->Append(Output(1, "good")).ok());
    first = log->end();
    ASSERT_TRUE(log->Append(Output(2, "flipped")).ok());
  }
  {
    const auto file = disk_.Open("/records", OpenMode::kReadWrite);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->WriteAt("X", first + 12).ok());
  }
  EXPECT_EQ(Open()->end(), first);
  EXPECT_EQ(seen_, std::vector<std::string>{"good"});
}

// A file system may keep a file's new size, and not what was written there.
TEST_F(RecordLogTest, ZerosAreNoRecords) {
  int64_t end = 0;
  {
    const auto log = Open();
    ASSERT_TRUE(log->Append(Output(1, "good")).ok());
    end = log->end();
  }
  {
    const auto file = disk_.Open("/records", OpenMode::kReadWrite);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->WriteAt(std::string(4096, '\0'), end).ok());
  }
  EXPECT_EQ(Open()->end(), end);
  EXPECT_EQ(seen_, std::vector<std::string>{"good"});
}

}  // namespace
}  // namespace muster
