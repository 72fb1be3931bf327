#include "services/common/journal/journal.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/simulated_disk.h"

namespace muster {
namespace {

using Call = SimulatedDisk::Call;

constexpr char kPath[] = "/journal";
constexpr auto kMarkSize = static_cast<int64_t>(kFrameHeaderSize);

class JournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<Journal> Create(const JournalOptions& options = {}) {
    auto journal = Journal::Create(disk_, kPath, options);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return *std::move(journal);
  }

  absl::StatusOr<std::unique_ptr<Journal>> Open() {
    records_.clear();
    return Journal::Open(disk_, kPath, [this](std::string_view record, int64_t position) {
      records_.emplace_back(record);
      positions_.push_back(position);
      return absl::OkStatus();
    });
  }

  // Writes records with a sync after each, and returns their positions.
  static std::vector<int64_t> Write(Journal& journal, const std::vector<std::string>& records) {
    std::vector<int64_t> positions;
    for (const std::string& record : records) {
      positions.push_back(journal.end());
      EXPECT_TRUE(journal.Append(record).ok());
      EXPECT_TRUE(journal.Sync().ok());
    }
    return positions;
  }

  void Resize(int64_t size) {
    ASSERT_TRUE((*disk_.Open(kPath, OpenMode::kReadWrite))->Truncate(size).ok());
  }

  SimulatedDisk disk_;
  std::vector<std::string> records_;
  std::vector<int64_t> positions_;
};

TEST_F(JournalTest, OpenReturnsTheRecordsInOrder) {
  const auto positions = Write(*Create(), {"a", "bb", std::string(40'000, 'c')});
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, (std::vector<std::string>{"a", "bb", std::string(40'000, 'c')}));
  EXPECT_EQ(positions_, positions);
}

TEST_F(JournalTest, CreateOverAnotherJournalFails) {
  Write(*Create(), {"a"});
  EXPECT_TRUE(absl::IsAlreadyExists(Journal::Create(disk_, kPath, {}).status()));
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, std::vector<std::string>{"a"});
}

TEST_F(JournalTest, OpenOfAMissingJournalFails) { EXPECT_TRUE(absl::IsNotFound(Open().status())); }

TEST_F(JournalTest, RecordOverTheLimitIsRefusedAndNotWritten) {
  const auto journal = Create({.max_record = 1'000});
  EXPECT_EQ(ReasonOf(journal->Append(std::string(1'001, 'x'))), "JOURNAL_RECORD_SIZE");
  EXPECT_EQ(ReasonOf(journal->Append("")), "JOURNAL_RECORD_SIZE");
  EXPECT_TRUE(journal->Append(std::string(1'000, 'y')).ok());
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, std::vector<std::string>{std::string(1'000, 'y')});
}

TEST_F(JournalTest, FullJournalRefusesRecords) {
  const auto journal = Create({.max_size = 200});
  EXPECT_TRUE(journal->Append(std::string(100, 'x')).ok());
  const int64_t end = journal->end();
  EXPECT_EQ(ReasonOf(journal->Append(std::string(100, 'x'))), "JOURNAL_FULL");
  EXPECT_EQ(journal->end(), end);
}

TEST_F(JournalTest, AppendsWithoutSyncShareOneAndAreBounded) {
  const auto journal = Create({.max_unsynced = 1'000});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(journal->Append(std::string(300, 'x')).ok());
  EXPECT_EQ(journal->durable_end(), Journal::begin());
  ASSERT_TRUE(journal->Append(std::string(300, 'x')).ok());
  EXPECT_GT(journal->durable_end(), Journal::begin());
  ASSERT_TRUE(journal->Sync().ok());
  EXPECT_EQ(journal->durable_end(), journal->end());
}

TEST_F(JournalTest, ReaderReadsFromAnyPosition) {
  const auto journal = Create();
  const auto positions = Write(*journal, {"one", "two", "three"});
  auto reader = *JournalReader::Open(disk_, kPath);
  std::string_view record;
  ASSERT_TRUE(reader->Seek(positions[1], journal->durable_end()).ok());
  EXPECT_TRUE(*reader->Next(journal->durable_end(), &record));
  EXPECT_EQ(record, "two");
  EXPECT_EQ(reader->position(), positions[2]);
  EXPECT_FALSE(*reader->Next(positions[2], &record));
  EXPECT_TRUE(*reader->Next(journal->durable_end(), &record));
  EXPECT_EQ(record, "three");
  EXPECT_TRUE(reader->Seek(journal->durable_end(), journal->durable_end()).ok());
  ASSERT_TRUE(reader->Seek(0, journal->durable_end()).ok());
  EXPECT_TRUE(*reader->Next(journal->durable_end(), &record));
  EXPECT_EQ(record, "one");
}

TEST_F(JournalTest, SeekWithinARecordFails) {
  const auto journal = Create();
  const auto positions = Write(*journal, {"one", "two"});
  auto reader = *JournalReader::Open(disk_, kPath);
  for (const int64_t position : {int64_t{-1}, int64_t{3}, positions[1] + 1, journal->end() + 1}) {
    EXPECT_EQ(ReasonOf(reader->Seek(position, journal->end())), "JOURNAL_POSITION") << position;
  }
}

TEST_F(JournalTest, TornTailIsTruncated) {
  for (int cut = 1; cut < 21; ++cut) {
    SCOPED_TRACE(cut);
    disk_.Remove(kPath).IgnoreError();
    const auto positions = Write(*Create(), {"whole", "torn!"});
    Resize(positions[1] + 21 - cut);
    const auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status();
    EXPECT_EQ(records_, std::vector<std::string>{"whole"});
    EXPECT_EQ((*journal)->end(), positions[1]);
    Write(**journal, {"next"});
    ASSERT_TRUE(Open().ok());
    EXPECT_EQ(records_, (std::vector<std::string>{"whole", "next"}));
  }
}

// A file system may keep the new size of a file without its bytes.
TEST_F(JournalTest, ZerosAtTheEndAreTruncated) {
  const auto journal = Create();
  Write(*journal, {"whole"});
  Resize(journal->end() + 4'096);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, std::vector<std::string>{"whole"});
  EXPECT_EQ(disk_.Stat(kPath)->size, journal->end() + kMarkSize);
}

TEST_F(JournalTest, FlippedBitOfASyncedRecordIsReportedWithItsPosition) {
  const std::vector<std::string> records = {"first record", "second", "the third", "last"};
  const auto journal = Create();
  const auto positions = Write(*journal, records);
  for (int64_t at = 0; at < journal->end(); ++at) {
    SCOPED_TRACE(at);
    disk_.FlipBit(kPath, at);
    int64_t damaged = 0;
    for (const int64_t position : positions) {
      if (position <= at) damaged = position;
    }
    const bool spare = at >= 36 && at < Journal::begin();  // unused bytes
    const auto journal = Open();
    if (spare) {
      EXPECT_TRUE(journal.ok()) << journal.status();
    } else {
      EXPECT_TRUE(absl::IsDataLoss(journal.status())) << journal.status();
      const std::string message(journal.status().message());
      EXPECT_TRUE(message.ends_with(absl::StrCat(" ", damaged))) << message;
    }
    disk_.FlipBit(kPath, at);
  }
  ASSERT_TRUE(Open().ok()) << "the file was left as it is";
  EXPECT_EQ(records_, records);
}

TEST_F(JournalTest, DamagedSyncMarkIsReplaced) {
  const std::vector<std::string> records = {"first record", "last"};
  const int64_t end = [&] {
    const auto journal = Create();
    Write(*journal, records);
    return journal->end();
  }();
  for (int64_t at = end; at < end + kMarkSize; ++at) {
    SCOPED_TRACE(at);
    disk_.FlipBit(kPath, at);
    ASSERT_TRUE(Open().ok());
    EXPECT_EQ(records_, records);
    disk_.FlipBit(kPath, end - 1);
    EXPECT_TRUE(absl::IsDataLoss(Open().status()));
    disk_.FlipBit(kPath, end - 1);
  }
}

// After a failed write, damage is still distinguished from a torn tail.
TEST_F(JournalTest, FailedWriteLeavesTheSyncMark) {
  const auto journal = Create();
  const auto positions = Write(*journal, {"synced"});
  disk_.FailAt(Call::kWrite, 1, ENOSPC);
  EXPECT_FALSE(journal->Append("lost, as the disk is full").ok());
  disk_.FlipBit(kPath, positions[0] + 17);
  EXPECT_TRUE(absl::IsDataLoss(Open().status()));
}

// Power is lost while the next record overwrites the mark.
TEST_F(JournalTest, TornRecordBehindTheSyncMarkIsTruncated) {
  const auto journal = Create();
  Write(*journal, {"whole"});
  Resize(journal->end() + 300);
  disk_.FlipBit(kPath, journal->end() + 250);
  const auto opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(records_, std::vector<std::string>{"whole"});
  EXPECT_EQ((*opened)->end(), journal->end());
  EXPECT_EQ(disk_.Stat(kPath)->size, journal->end() + kMarkSize);
}

// The sector of a synced record is lost, and its old content is the mark before it.
TEST_F(JournalTest, SyncedRecordThatTheDiskLostIsDamage) {
  const auto journal = Create();
  Write(*journal, {"first"});
  const int64_t end = journal->end();
  const std::string mark = ReadSmallFile(disk_, kPath, 10'000)->substr(static_cast<size_t>(end));
  Write(*journal, {std::string(100, 'x'), "third"});
  ASSERT_TRUE((*disk_.Open(kPath, OpenMode::kReadWrite))->WriteAt(mark, end).ok());
  EXPECT_EQ(ReasonOf(Open().status()), "JOURNAL_DAMAGED");
}

TEST_F(JournalTest, MarkBeforeTheEndOfTheWriterIsDamageToTheReader) {
  const auto journal = Create();
  Write(*journal, {"first"});
  const int64_t end = journal->end();
  const std::string mark = ReadSmallFile(disk_, kPath, 10'000)->substr(static_cast<size_t>(end));
  Write(*journal, {"x"});  // the shortest record is one byte longer than a mark
  ASSERT_TRUE((*disk_.Open(kPath, OpenMode::kReadWrite))->WriteAt(mark, end).ok());
  auto reader = *JournalReader::Open(disk_, kPath);
  std::string_view record;
  EXPECT_TRUE(*reader->Next(journal->durable_end(), &record));
  EXPECT_EQ(ReasonOf(reader->Next(journal->durable_end(), &record).status()), "JOURNAL_DAMAGED");
  EXPECT_EQ(reader->position(), end);
}

TEST_F(JournalTest, MoreBadBytesThanACrashCanTearAreDamage) {
  const auto journal = Create({.max_record = 500, .max_unsynced = 500});
  const auto positions = Write(*journal, {std::string(400, 'a'), std::string(400, 'b')});
  Resize(positions[0]);
  Resize(positions[0] + 600);  // zeros
  EXPECT_TRUE(absl::IsDataLoss(Open().status()));
}

TEST_F(JournalTest, ReaderReportsDamageOfADurableRecord) {
  const auto journal = Create();
  const auto positions = Write(*journal, {"one", "two"});
  disk_.FlipBit(kPath, positions[1] + 17);
  auto reader = *JournalReader::Open(disk_, kPath);
  std::string_view record;
  EXPECT_TRUE(*reader->Next(journal->end(), &record));
  EXPECT_EQ(ReasonOf(reader->Next(journal->end(), &record).status()), "JOURNAL_DAMAGED");
  EXPECT_EQ(reader->position(), positions[1]);
}

// A payload of a peer is stored unchanged: it must not be mistaken for a part of the journal.
TEST_F(JournalTest, PayloadThatLooksLikeAFrameIsNoProofOfDamage) {
  const auto other = *Journal::Create(disk_, "/other", {});
  Write(*other, {"x", "y", "z"});
  const std::string forged = *ReadSmallFile(disk_, "/other", 10'000);
  const auto journal = Create();
  Write(*journal, {"good"});
  const int64_t position = journal->end();
  ASSERT_TRUE(journal->Append(forged + forged + forged).ok());
  disk_.FlipBit(kPath, position + 17);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, std::vector<std::string>{"good"});
}

TEST_F(JournalTest, FailedWriteLeavesTheJournalUnchanged) {
  const auto journal = Create();
  Write(*journal, {"first"});
  for (const bool truncated : {true, false}) {
    const int64_t end = journal->end();
    disk_.FailAt(Call::kWrite, 1, ENOSPC);
    if (!truncated) disk_.FailAt(Call::kTruncate, 1, EIO);
    EXPECT_TRUE(absl::IsResourceExhausted(journal->Append("lost, as the disk is full")));
    EXPECT_EQ(journal->end(), end);
    Write(*journal, {"next"});
  }
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, (std::vector<std::string>{"first", "next", "next"}));
}

TEST_F(JournalTest, RecordsOfAFailedSyncAreWrittenAgain) {
  const auto journal = Create();
  ASSERT_TRUE(journal->Append("a").ok());
  disk_.FailAt(Call::kSync, 1, EIO);
  EXPECT_FALSE(journal->Sync().ok());
  EXPECT_EQ(journal->durable_end(), Journal::begin());
  ASSERT_TRUE(journal->Append("b").ok());
  ASSERT_TRUE(journal->Sync().ok());
  disk_.Crash(1);
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(JournalTest, FailedCreationLeavesNoFile) {
  for (const Call call : {Call::kCreate, Call::kWrite, Call::kSync, Call::kSyncFolder}) {
    for (const int error : {EIO, ENOSPC}) {
      disk_.FailAt(call, 1, error);
      EXPECT_FALSE(Journal::Create(disk_, kPath, {}).ok());
      EXPECT_TRUE(absl::IsNotFound(disk_.Stat(kPath).status()));
    }
  }
}

TEST_F(JournalTest, InterruptedCreationIsReplaced) {
  Create();
  Resize(20);
  EXPECT_EQ(ReasonOf(Open().status()), "JOURNAL_UNFINISHED");
  Write(*Create(), {"a"});
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, std::vector<std::string>{"a"});
}

TEST_F(JournalTest, VisitorsFailureEndsOpen) {
  Write(*Create(), {"a"});
  const auto refuse = [](std::string_view, int64_t) { return absl::DataLossError("no record"); };
  EXPECT_EQ(Journal::Open(disk_, kPath, refuse).status(), absl::DataLossError("no record"));
}

}  // namespace
}  // namespace muster
