// A spool whose disk fails or has damaged its data.
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/fault_vfs.h"
#include "services/relay/testing/spool_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::SpoolFixture;

class SpoolDamageTest : public testing::SpoolTestBase {
 protected:
  // Changes the database while the spool is closed, and opens it again.
  absl::Status Change(const std::string& sql) {
    fixture_.Close();
    {
      ASSIGN_OR_RETURN(auto db, sqlite::Connection::Open(fixture_.options.folder + "/spool.db",
                                                         sqlite::Connection::Access::kReadWrite));
      db->Execute(sql.c_str());
      RETURN_IF_ERROR(db->TakeStatus());
    }
    return fixture_.Open();
  }
};

// A failure of the disk that may pass loses nothing.
TEST_F(SpoolDamageTest, ResultThatCannotBeReadNowIsDeliveredLater) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(fixture_.Deliver("n2", "logs", large_).ok());
  for (const auto call : {SimulatedDisk::Call::kOpen, SimulatedDisk::Call::kRead}) {
    for (int n = 1; n <= 5; ++n) {
      fixture_.disk.FailAt(call, n, n % 2 == 0 ? EIO : EMFILE);
      for (int i = 0; i < 2; ++i) {
        if (fixture_.Next().empty()) continue;
        EXPECT_FALSE(fixture_.delivery->expired) << fixture_.delivery->why;
        fixture_.spool().Requeue(*fixture_.delivery, absl::UnavailableError("no connection"));
      }
      fixture_.clock.Advance(absl::Minutes(1));
    }
  }
  EXPECT_EQ(fixture_.spool().waiting(), 2);
  EXPECT_THAT(fixture_.Metric(),
              HasSubstr("muster_relay_spool_outcomes_total{outcome=\"lost\"} 0\n"));
}

// The node still has it, and the disk of the relay may never return it.
TEST_F(SpoolDamageTest, ResultThatCannotBeReadIsDeliveredByItsNode) {
  ASSERT_TRUE(fixture_.Deliver("n2", "logs", large_).ok());
  const auto description = SpoolFixture::Request("n2", "logs", large_).description();
  EXPECT_TRUE(fixture_.spool().Holds(description));
  fixture_.disk.FailAt(SimulatedDisk::Call::kOpen, 1, EIO);
  EXPECT_EQ(fixture_.Next(), "");
  EXPECT_FALSE(fixture_.spool().Holds(description));
  EXPECT_EQ(fixture_.spool().waiting(), 1);
}

TEST_F(SpoolDamageTest, ResultWithoutARowIsDeliveredByItsNode) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  const auto description = SpoolFixture::Request("n1", "facts", small_).description();
  ASSERT_TRUE(Change("DELETE FROM entries").ok());
  EXPECT_FALSE(fixture_.spool().Holds(description));
  EXPECT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  EXPECT_TRUE(fixture_.spool().Holds(description));
}

TEST_F(SpoolDamageTest, EntriesSurviveAStartThatCannotReadTheDisk) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(fixture_.Deliver("n2", "logs", large_).ok());
  const auto opened = fixture_.OpenUpload(SpoolFixture::Request("n3", "logs", large_));
  ASSERT_TRUE(fixture_.Send(*opened, "n3", large_, 100'000).ok());
  for (const auto call : {SimulatedDisk::Call::kOpen, SimulatedDisk::Call::kRead}) {
    for (int n = 1; n <= 5; ++n) {
      fixture_.Close();
      fixture_.disk.FailAt(call, n, EMFILE);
      fixture_.Open().IgnoreError();  // the first call is the lock of the blobs
    }
  }
  fixture_.Close();
  fixture_.disk.Restart();
  ASSERT_TRUE(fixture_.Open().ok());
  EXPECT_EQ(fixture_.spool().waiting(), 2);
  EXPECT_EQ(fixture_.OpenUpload(SpoolFixture::Request("n3", "logs", large_))->offset(), 100'000);
}

TEST_F(SpoolDamageTest, ResultWhoseBytesAreGoneIsReportedLost) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_TRUE(RemoveTree(fixture_.disk, fixture_.options.folder + "/blobs").ok());
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  EXPECT_TRUE(fixture_.delivery->lost);
}

TEST_F(SpoolDamageTest, DamagedBytesOfALargeResultAreFoundByTheContentCheck) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  fixture_.spool().CheckContent(&*fixture_.delivery);
  EXPECT_FALSE(fixture_.delivery->lost);
  fixture_.DamageBlobs();
  fixture_.spool().CheckContent(&*fixture_.delivery);
  EXPECT_TRUE(fixture_.delivery->lost);
  EXPECT_THAT(fixture_.delivery->why, HasSubstr("do not match their checksum"));
}

TEST_F(SpoolDamageTest, ContentCheckThatCannotReadReportsNoLoss) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  fixture_.disk.FailAt(SimulatedDisk::Call::kRead, 1, EIO);
  fixture_.spool().CheckContent(&*fixture_.delivery);
  EXPECT_FALSE(fixture_.delivery->lost);
}

TEST_F(SpoolDamageTest, DamagedBytesOfASmallResultAreReportedLost) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(Change("UPDATE entries SET body = x'00'").ok());
  ASSERT_EQ(fixture_.Next(), "n1/facts");
  EXPECT_TRUE(fixture_.delivery->lost);
}

TEST_F(SpoolDamageTest, DamagedEntryIsCountedAsLost) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_TRUE(Change("UPDATE entries SET header = x'00'").ok());
  EXPECT_EQ(fixture_.Next(), "");
  EXPECT_THAT(fixture_.Metric(),
              HasSubstr("muster_relay_spool_outcomes_total{outcome=\"lost\"} 2\n"));
  EXPECT_TRUE(fixture_.Blobs().empty());
}

TEST_F(SpoolDamageTest, UnreadableDatabaseRefusesToStart) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  fixture_.Close();
  std::ofstream(fixture_.options.folder + "/spool.db") << std::string(8192, 'x');
  const absl::Status opened = fixture_.Open();
  EXPECT_EQ(ReasonOf(opened), "STORE_CORRUPT");
  EXPECT_THAT(std::string(opened.message()), HasSubstr("/spool.db"));
  EXPECT_EQ(fixture_.Blobs().size(), 1u);
}

TEST_F(SpoolDamageTest, BytesWithoutAnEntryAreRemovedAtTheStart) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_EQ(fixture_.Blobs().size(), 1u);
  ASSERT_TRUE(Change("DELETE FROM entries").ok());
  EXPECT_EQ(fixture_.Next(), "");
  EXPECT_TRUE(fixture_.Blobs().empty());
}

TEST_F(SpoolDamageTest, FailedRemovalStaysChargedAndIsRepeated) {
  fixture_.Close();
  sqlite::FaultVfs vfs;
  ASSERT_TRUE(fixture_.Open().ok());
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  const std::string before = fixture_.Used();
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  vfs.FailAt(sqlite::Fault::kFullDisk, 1, /*for_good=*/true);
  fixture_.spool().Finish(*fixture_.delivery, "committed");
  EXPECT_EQ(fixture_.Next(), "");
  EXPECT_EQ(fixture_.Blobs().size(), 1u);
  EXPECT_EQ(fixture_.Used(), before);
  fixture_.spool().Sweep();
  EXPECT_EQ(fixture_.Used(), before);
  vfs.Clear();
  fixture_.spool().Sweep();
  EXPECT_TRUE(fixture_.Blobs().empty());
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_bytes 0\n"));
  ASSERT_TRUE(fixture_.Open().ok());
  EXPECT_EQ(fixture_.Next(), "") << "a committed result is delivered again";
  fixture_.Close();
}

TEST_F(SpoolDamageTest, FailedDatabaseEndsTheRelay) {
  fixture_.Close();
  sqlite::FaultVfs vfs;
  absl::Status fatal;
  fixture_.options.on_fatal = [&](const absl::Status& why) { fatal = why; };
  ASSERT_TRUE(fixture_.Open().ok());
  vfs.FailAt(sqlite::Fault::kSyncError, 1);
  EXPECT_FALSE(fixture_.Deliver("n1", "facts", small_).ok());
  EXPECT_EQ(ReasonOf(fatal), "STORE_FAILED");
  fixture_.Close();
}

// The bytes of a large result are published before its row is written.
TEST_F(SpoolDamageTest, RemovedUploadWhoseCommitFailedLeavesNoBlob) {
  fixture_.Close();
  sqlite::FaultVfs vfs;
  ASSERT_TRUE(fixture_.Open().ok());
  const auto opened = fixture_.OpenUpload(SpoolFixture::Request("n1", "logs", large_));
  ASSERT_TRUE(fixture_.Send(*opened, "n1", large_, large_.size()).ok());
  vfs.FailAt(sqlite::Fault::kFullDisk, 1);
  EXPECT_EQ(ReasonOf(fixture_.Complete(*opened, "n1", "logs", large_)), "DISK_FULL");
  EXPECT_EQ(fixture_.Blobs().size(), 1u);
  fixture_.spool().DiscardUpload(SpoolFixture::Request("n1", "logs", large_).description());
  fixture_.DrainDisk();
  EXPECT_TRUE(fixture_.Blobs().empty());
  fixture_.Close();
}

}  // namespace
}  // namespace muster
