#include "services/common/store/sqlite/local_database.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/store/sqlite/fault_vfs.h"

namespace muster::sqlite {
namespace {

constexpr const char* kSteps[] = {"CREATE TABLE words (word TEXT NOT NULL PRIMARY KEY)"};

class LocalDatabaseTest : public ::testing::Test {
 protected:
  LocalDatabaseTest() {
    folder_ = ::testing::TempDir() + "/database_XXXXXX";
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    Open();
  }
  ~LocalDatabaseTest() override {
    database_.reset();
    RemoveTree(PosixFileOps(), folder_).IgnoreError();
  }

  std::string path() const { return folder_ + "/words.db"; }

  void Open() {
    database_.reset();
    auto opened = LocalDatabase::Open(path(), kSteps,
                                      [this](const absl::Status& why) { fatal_.push_back(why); });
    ASSERT_TRUE(opened.ok()) << opened.status();
    database_ = *std::move(opened);
  }

  absl::Status Add(const std::string& word) {
    return database_->Write([&](Connection& db) {
      db.Run("INSERT INTO words VALUES (?)", word);
      return absl::OkStatus();
    });
  }

  std::vector<std::string> Words() {
    std::vector<std::string> words;
    const absl::Status read = database_->Read([&](Connection& db) {
      Rows rows = db.Query("SELECT word FROM words ORDER BY word");
      while (rows.Next()) words.push_back(rows.Text());
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return words;
  }

  using Strings = std::vector<std::string>;

  FaultVfs vfs_;
  std::string folder_;
  std::vector<absl::Status> fatal_;
  std::unique_ptr<LocalDatabase> database_;
};

TEST_F(LocalDatabaseTest, WriteIsSyncedWhenItReturns) {
  ASSERT_TRUE(Add("a").ok());
  EXPECT_FALSE(vfs_.has_unsynced_writes());
  EXPECT_EQ(Words(), Strings{"a"});
  Open();
  EXPECT_EQ(Words(), Strings{"a"});
}

TEST_F(LocalDatabaseTest, LogOfALargeChangeIsTruncated) {
  ASSERT_TRUE(Add(std::string(12 << 20, 'x')).ok());
  EXPECT_LE(std::filesystem::file_size(path() + "-wal"), 8u << 20);
  EXPECT_EQ(Words().size(), 1u);
}

// The reader needs the log while the large change is committed.
TEST_F(LocalDatabaseTest, LogThatAReaderNeedsIsTruncatedByALaterChange) {
  ASSERT_TRUE(Add("a").ok());
  const absl::Status read = database_->Read([&](Connection& db) {
    Rows rows = db.Query("SELECT word FROM words");
    EXPECT_TRUE(rows.Next());
    EXPECT_TRUE(Add(std::string(12 << 20, 'x')).ok());
    EXPECT_GT(std::filesystem::file_size(path() + "-wal"), 8u << 20);
    return absl::OkStatus();
  });
  ASSERT_TRUE(read.ok()) << read;
  ASSERT_TRUE(Add("b").ok());
  EXPECT_LE(std::filesystem::file_size(path() + "-wal"), 8u << 20);
}

TEST_F(LocalDatabaseTest, ErrorOfAChangeUndoesIt) {
  const absl::Status status = database_->Write([](Connection& db) {
    db.Run("INSERT INTO words VALUES ('a')");
    return absl::AbortedError("no");
  });
  EXPECT_EQ(status, absl::AbortedError("no"));
  EXPECT_EQ(Words(), Strings{});
}

// Two writers wait for the first one, so they are committed together.
TEST_F(LocalDatabaseTest, FailedChangeDoesNotFailTheOthersOfItsGroup) {
  std::latch first_runs(1);
  std::latch others_wait(1);
  std::thread first([&] {
    EXPECT_TRUE(database_
                    ->Write([&](Connection& db) {
                      first_runs.count_down();
                      others_wait.wait();
                      db.Run("INSERT INTO words VALUES ('first')");
                      return absl::OkStatus();
                    })
                    .ok());
  });
  first_runs.wait();
  absl::Status good;
  absl::Status bad;
  std::thread second([&] { good = Add("second"); });
  std::thread third(
      [&] { bad = database_->Write([](Connection&) { return absl::AbortedError("no"); }); });
  while (database_->waiting() < 2) std::this_thread::yield();
  others_wait.count_down();
  first.join();
  second.join();
  third.join();
  EXPECT_TRUE(good.ok()) << good;
  EXPECT_TRUE(absl::IsAborted(bad));
  EXPECT_EQ(Words(), (Strings{"first", "second"}));
}

TEST_F(LocalDatabaseTest, FullDiskLeavesTheDatabaseAsItWas) {
  ASSERT_TRUE(Add("a").ok());
  vfs_.FailAt(Fault::kFullDisk, 1);
  EXPECT_EQ(ReasonOf(Add("b")), "DISK_FULL");
  EXPECT_TRUE(fatal_.empty());
  EXPECT_TRUE(Add("c").ok());
  EXPECT_EQ(Words(), (Strings{"a", "c"}));
}

TEST_F(LocalDatabaseTest, FailedSyncStopsAllWritesUntilTheNextOpen) {
  ASSERT_TRUE(Add("a").ok());
  vfs_.FailAt(Fault::kSyncError, 1);
  EXPECT_EQ(ReasonOf(Add("b")), "STORE_FAILED");
  EXPECT_EQ(ReasonOf(Add("c")), "STORE_FAILED");
  ASSERT_EQ(fatal_.size(), 1u);
  EXPECT_EQ(ReasonOf(fatal_[0]), "STORE_FAILED");
  EXPECT_NE(fatal_[0].message().find(path()), std::string::npos) << fatal_[0];
  EXPECT_EQ(vfs_.syncs_after_failure(), 0);
  vfs_.Clear();
  Open();
  EXPECT_EQ(Words().front(), "a");
  EXPECT_TRUE(Add("d").ok());
}

TEST_F(LocalDatabaseTest, OpenOfAFileThatIsNoDatabaseFails) {
  database_.reset();
  std::ofstream(path()) << std::string(8192, 'x');
  const auto opened = LocalDatabase::Open(path(), kSteps);
  EXPECT_EQ(ReasonOf(opened.status()), "STORE_CORRUPT");
  EXPECT_NE(opened.status().message().find(path()), std::string::npos) << opened.status();
}

TEST_F(LocalDatabaseTest, OpenOfANewerVersionFails) {
  database_.reset();
  EXPECT_EQ(ReasonOf(LocalDatabase::Open(path(), std::span<const char* const>()).status()),
            "STORE_TOO_NEW");
}

TEST_F(LocalDatabaseTest, FileIsReadableByItsOwnerAlone) {
  const auto info = std::filesystem::status(path());
  EXPECT_EQ(info.permissions(), std::filesystem::perms(0600));
}

}  // namespace
}  // namespace muster::sqlite
