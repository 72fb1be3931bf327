#include "services/relay/spool/spool.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
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

class SpoolTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fixture_.Open().ok()); }

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

  // The line of the used quota in the metrics.
  std::string Used() const {
    const std::string metrics = fixture_.Metric();
    const size_t at = metrics.find("\nmuster_relay_spool_bytes ");
    return metrics.substr(at, metrics.find('\n', at + 1) - at);
  }

  SpoolFixture fixture_;
  const std::string small_ = Pattern(1000);
  const std::string large_ = Pattern(200'000);
};

TEST_F(SpoolTest, AcceptedResultsAreDeliveredUnchangedAfterARestart) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_TRUE(fixture_.Open().ok());
  EXPECT_EQ(fixture_.spool().waiting(), 2);
  ASSERT_EQ(fixture_.Next(), "n1/facts");
  EXPECT_TRUE(fixture_.Bytes() == small_);
  EXPECT_EQ(fixture_.delivery->header.description().file_name(), "facts.json");
  EXPECT_EQ(fixture_.delivery->header.crc32c(), Crc32c(small_));
  EXPECT_EQ(fixture_.delivery->header.spooled().size(), 1000);
  EXPECT_FALSE(fixture_.delivery->header.spooled().signature().value().empty());
  fixture_.spool().Finish(*fixture_.delivery, "committed");
  ASSERT_TRUE(fixture_.Open().ok());
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  EXPECT_TRUE(fixture_.Bytes() == large_);
  EXPECT_TRUE(fixture_.Bytes(150'000) == large_.substr(150'000));
  fixture_.spool().Finish(*fixture_.delivery, "committed");
  EXPECT_EQ(fixture_.Next(), "");
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_bytes 0\n"));
  EXPECT_TRUE(fixture_.Blobs().empty());
}

TEST_F(SpoolTest, ResultsOfANodeLeaveInOrderAndNodesTakeTurns) {
  for (const char* plugin : {"c", "a", "b"})
    ASSERT_TRUE(fixture_.Deliver("n1", plugin, small_).ok());
  ASSERT_TRUE(fixture_.Deliver("n2", "x", small_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/c");
  const SpoolDelivery first = *fixture_.delivery;
  ASSERT_EQ(fixture_.Next(), "n2/x");
  const SpoolDelivery other = *fixture_.delivery;
  EXPECT_EQ(fixture_.Next(), "");
  fixture_.spool().Requeue(first, absl::Seconds(10));
  EXPECT_EQ(fixture_.Next(), "");  // its node waits
  fixture_.spool().Finish(other, "committed");
  fixture_.clock.Advance(absl::Seconds(11));
  ASSERT_EQ(fixture_.Next(), "n1/c");
  fixture_.spool().Finish(*fixture_.delivery, "refused");
  ASSERT_EQ(fixture_.Next(), "n1/a");
  fixture_.spool().Finish(*fixture_.delivery, "committed");
  ASSERT_EQ(fixture_.Next(), "n1/b");
  EXPECT_THAT(fixture_.Metric(),
              HasSubstr("muster_relay_spool_outcomes_total{outcome=\"refused\"} 1\n"));
}

TEST_F(SpoolTest, UploadIsResumedAfterARestart) {
  auto opened = fixture_.OpenUpload(SpoolFixture::Request("n1", "logs", large_));
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE(fixture_.Send(*opened, "n1", large_, 100'000).ok());
  ASSERT_TRUE(fixture_.Open().ok());
  EXPECT_EQ(fixture_.Next(), "");
  opened = fixture_.OpenUpload(SpoolFixture::Request("n1", "logs", large_));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->offset(), 100'000);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", large_, large_.size()).ok());
  EXPECT_FALSE(fixture_.spool().Receipt(opened->upload_id()));
  ASSERT_TRUE(fixture_.Complete(*opened, "n1", "logs", large_).ok());
  EXPECT_EQ(fixture_.spool().Receipt(opened->upload_id())->relay(), "r1");
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  EXPECT_TRUE(fixture_.Bytes() == large_);
}

TEST_F(SpoolTest, SameContentSucceedsAndOtherContentIsTakenOver) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  EXPECT_TRUE(fixture_.spool().Holds(SpoolFixture::Request("n1", "facts", small_).description()));
  EXPECT_FALSE(
      fixture_.spool().Holds(SpoolFixture::Request("n1", "facts", small_, 2).description()));
  const auto again = fixture_.OpenUpload(SpoolFixture::Request("n1", "facts", small_));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->offset(), 1000);
  EXPECT_TRUE(fixture_.spool().Receipt(again->upload_id()));
  EXPECT_EQ(ReasonOf(fixture_.OpenUpload(SpoolFixture::Request("n1", "facts", "other")).status()),
            "TAKEN_OVER");
  EXPECT_TRUE(fixture_.Deliver("n1", "facts", "other", 2).ok());
  EXPECT_EQ(fixture_.spool().waiting(), 2);
}

TEST_F(SpoolTest, ResultWithoutTheSignatureOfItsNodeIsRejected) {
  const auto opened = fixture_.OpenUpload(SpoolFixture::Request("n1", "facts", small_));
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(fixture_.Send(*opened, "n1", small_, 1000).ok());
  EXPECT_EQ(ReasonOf(fixture_.Complete(*opened, "n1", "facts", small_, 1, "")),
            "SIGNATURE_REQUIRED");
  const auto again = fixture_.OpenUpload(SpoolFixture::Request("n1", "facts", small_));
  EXPECT_EQ(ReasonOf(fixture_.Complete(*again, "n1", "facts", small_, 1, "n2")),
            "INVALID_SIGNATURE");
  EXPECT_EQ(fixture_.spool().Find(opened->upload_id(), "n2").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(fixture_.spool().waiting(), 0);
  const auto good = fixture_.OpenUpload(SpoolFixture::Request("n1", "facts", small_));
  EXPECT_TRUE(fixture_.Complete(*good, "n1", "facts", small_).ok());
  EXPECT_EQ(fixture_.spool().waiting(), 1);
}

TEST_F(SpoolTest, UploadContinuesAfterABadSignature) {
  auto request = SpoolFixture::Request("n1", "logs", "");
  request.clear_size();
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE(fixture_.Send(*opened, "n1", large_, 100'000).ok());
  const std::string half = large_.substr(0, 100'000);
  EXPECT_EQ(ReasonOf(fixture_.Complete(*opened, "n1", "logs", half, 1, "n2")), "INVALID_SIGNATURE");
  const auto again = fixture_.OpenUpload(request);
  EXPECT_EQ(again->offset(), 100'000);
  const absl::Status sent = fixture_.Send(*again, "n1", large_, large_.size());
  EXPECT_TRUE(sent.ok()) << sent;
  EXPECT_TRUE(fixture_.Complete(*again, "n1", "logs", large_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  EXPECT_TRUE(fixture_.Bytes() == large_);
}

TEST_F(SpoolTest, FullSpoolRejectsUploadsAndOneNodeCannotFillIt) {
  fixture_.options.quota_bytes = 1'000'000;
  fixture_.options.max_entries = 12;
  ASSERT_TRUE(fixture_.Open().ok());
  EXPECT_EQ(ReasonOf(fixture_.Deliver("n1", "logs", Pattern(260'000))), "SPOOL_FULL");
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  const absl::Status full = fixture_.Deliver("n1", "more", Pattern(50'000));
  EXPECT_EQ(ReasonOf(full), "SPOOL_FULL");
  EXPECT_TRUE(RetryAfterOf(full));
  for (const char* plugin : {"a", "b", "c"}) ASSERT_TRUE(fixture_.Deliver("n2", plugin, "x").ok());
  EXPECT_EQ(ReasonOf(fixture_.Deliver("n2", "d", "x")), "SPOOL_FULL");
  EXPECT_TRUE(fixture_.Deliver("n3", "a", "x").ok());
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_refused_total 3\n"));
  // An upload without a size ends at the quota.
  auto request = SpoolFixture::Request("n4", "logs", "");
  request.clear_size();
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(ReasonOf(fixture_.Send(*opened, "n4", Pattern(300'000), 300'000)), "SPOOL_FULL");
  // A delivered result frees its quota.
  fixture_.Next();
  fixture_.spool().Finish(*fixture_.delivery, "committed");
  EXPECT_TRUE(fixture_.Deliver("n1", "more", Pattern(50'000)).ok());
}

TEST_F(SpoolTest, ExpiredResultIsDeliveredAsAnError) {
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_oldest_seconds 0\n"));
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  fixture_.clock.Advance(absl::Hours(23));
  ASSERT_TRUE(fixture_.Deliver("n2", "facts", small_).ok());
  fixture_.clock.Advance(absl::Hours(1));
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_oldest_seconds 86400\n"));
  ASSERT_TRUE(fixture_.Open().ok());
  ASSERT_EQ(fixture_.Next(), "n1/facts");
  EXPECT_TRUE(fixture_.delivery->expired);
  EXPECT_THAT(fixture_.delivery->why, HasSubstr("relay r1 accepted this result at 2025-06-15"));
}

TEST_F(SpoolTest, IdleUploadIsRemoved) {
  ASSERT_TRUE(fixture_.OpenUpload(SpoolFixture::Request("n1", "logs", large_)).ok());
  fixture_.clock.Advance(absl::Minutes(59));
  fixture_.spool().Sweep();
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 1\n"));
  fixture_.clock.Advance(absl::Minutes(2));
  fixture_.spool().Sweep();
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_entries 0\n"));
  const auto opened = fixture_.OpenUpload(SpoolFixture::Request("n1", "logs", large_));
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->offset(), 0);
  fixture_.spool().DiscardUpload(SpoolFixture::Request("n1", "logs", large_).description());
  EXPECT_EQ(ReasonOf(fixture_.spool().Find(opened->upload_id(), "n1").status()),
            "UPLOAD_NOT_FOUND");
}

// Returns the number of open file descriptors of this process.
int OpenFiles() {
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++files;
  }
  return files;
}

TEST_F(SpoolTest, IdleUploadsHoldNoFilesAndAreResumed) {
  constexpr int kUploads = 200;
  fixture_.ops = &PosixFileOps();
  ASSERT_TRUE(fixture_.Open().ok());
  const int before = OpenFiles();
  for (int i = 0; i < kUploads; ++i) {
    const auto request = SpoolFixture::Request("n1", absl::StrCat("p", i), large_);
    ASSERT_TRUE(fixture_.OpenUpload(request).ok());
  }
  EXPECT_GE(OpenFiles(), before + kUploads);
  fixture_.clock.Advance(absl::Seconds(11));
  fixture_.spool().Sweep();
  fixture_.DrainDisk();
  EXPECT_EQ(OpenFiles(), before);
  // A stream opens the files of its upload again, and its end closes them.
  auto opened = fixture_.OpenUpload(SpoolFixture::Request("n1", "p7", large_));
  ASSERT_TRUE(fixture_.Send(*opened, "n1", large_, 100'000).ok());
  opened = fixture_.OpenUpload(SpoolFixture::Request("n1", "p7", large_));
  EXPECT_EQ(opened->offset(), 100'000);
  fixture_.clock.Advance(absl::Seconds(11));
  fixture_.spool().Sweep();
  fixture_.DrainDisk();
  EXPECT_EQ(OpenFiles(), before);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", large_, large_.size()).ok());
  ASSERT_TRUE(fixture_.Complete(*opened, "n1", "p7", large_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/p7");
  EXPECT_TRUE(fixture_.Bytes() == large_);
}

TEST_F(SpoolTest, JumpOfTheWallClockRemovesNoUpload) {
  const auto request = SpoolFixture::Request("n1", "logs", large_);
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", large_, 100'000).ok());
  ASSERT_TRUE(fixture_.OpenUpload(request).ok());
  fixture_.clock.JumpWall(fixture_.clock.Now() + absl::Hours(12));
  fixture_.spool().Sweep();
  EXPECT_EQ(fixture_.OpenUpload(request)->offset(), 100'000);
}

TEST_F(SpoolTest, ResultHasTheDescriptionOfTheLastOpen) {
  auto request = SpoolFixture::Request("n1", "facts", small_);
  request.mutable_description()->set_file_name("old.json");
  ASSERT_TRUE(fixture_.OpenUpload(request).ok());
  request.mutable_description()->set_file_name("new.json");
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", small_, small_.size()).ok());
  ASSERT_TRUE(fixture_.Complete(*opened, "n1", "facts", small_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/facts");
  EXPECT_EQ(fixture_.delivery->header.description().file_name(), "new.json");
}

// A failure of the disk that may pass loses nothing.
TEST_F(SpoolTest, ResultThatCannotBeReadNowIsDeliveredLater) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(fixture_.Deliver("n2", "logs", large_).ok());
  for (const auto call : {SimulatedDisk::Call::kOpen, SimulatedDisk::Call::kRead}) {
    for (int n = 1; n <= 5; ++n) {
      fixture_.disk.FailAt(call, n, n % 2 == 0 ? EIO : EMFILE);
      for (int i = 0; i < 2; ++i) {
        if (fixture_.Next().empty()) continue;
        EXPECT_FALSE(fixture_.delivery->expired) << fixture_.delivery->why;
        fixture_.spool().Requeue(*fixture_.delivery, absl::ZeroDuration());
      }
      fixture_.clock.Advance(absl::Minutes(1));
    }
  }
  EXPECT_EQ(fixture_.spool().waiting(), 2);
  EXPECT_THAT(fixture_.Metric(),
              HasSubstr("muster_relay_spool_outcomes_total{outcome=\"lost\"} 0\n"));
}

TEST_F(SpoolTest, EntriesSurviveAStartThatCannotReadTheDisk) {
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

TEST_F(SpoolTest, ResultWhoseBytesAreGoneIsReportedLost) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_TRUE(RemoveTree(fixture_.disk, fixture_.options.folder + "/blobs").ok());
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  EXPECT_TRUE(fixture_.delivery->lost);
}

TEST_F(SpoolTest, DamagedBytesOfALargeResultAreFoundByTheContentCheck) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  fixture_.spool().CheckContent(&*fixture_.delivery);
  EXPECT_FALSE(fixture_.delivery->lost);
  fixture_.DamageBlobs();
  fixture_.spool().CheckContent(&*fixture_.delivery);
  EXPECT_TRUE(fixture_.delivery->lost);
  EXPECT_THAT(fixture_.delivery->why, HasSubstr("do not match their checksum"));
}

TEST_F(SpoolTest, ContentCheckThatCannotReadReportsNoLoss) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  fixture_.disk.FailAt(SimulatedDisk::Call::kRead, 1, EIO);
  fixture_.spool().CheckContent(&*fixture_.delivery);
  EXPECT_FALSE(fixture_.delivery->lost);
}

TEST_F(SpoolTest, DamagedBytesOfASmallResultAreReportedLost) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(Change("UPDATE entries SET body = x'00'").ok());
  ASSERT_EQ(fixture_.Next(), "n1/facts");
  EXPECT_TRUE(fixture_.delivery->lost);
}

TEST_F(SpoolTest, DamagedEntryIsCountedAsLost) {
  ASSERT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_TRUE(Change("UPDATE entries SET header = x'00'").ok());
  EXPECT_EQ(fixture_.Next(), "");
  EXPECT_THAT(fixture_.Metric(),
              HasSubstr("muster_relay_spool_outcomes_total{outcome=\"lost\"} 2\n"));
  EXPECT_TRUE(fixture_.Blobs().empty());
}

TEST_F(SpoolTest, UnreadableDatabaseRefusesToStart) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  fixture_.Close();
  std::ofstream(fixture_.options.folder + "/spool.db") << std::string(8192, 'x');
  const absl::Status opened = fixture_.Open();
  EXPECT_EQ(ReasonOf(opened), "STORE_CORRUPT");
  EXPECT_THAT(std::string(opened.message()), HasSubstr("/spool.db"));
  EXPECT_EQ(fixture_.Blobs().size(), 1u);
}

TEST_F(SpoolTest, BytesWithoutAnEntryAreRemovedAtTheStart) {
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  ASSERT_EQ(fixture_.Blobs().size(), 1u);
  ASSERT_TRUE(Change("DELETE FROM entries").ok());
  EXPECT_EQ(fixture_.Next(), "");
  EXPECT_TRUE(fixture_.Blobs().empty());
}

// A chunk must be verified before it is charged: the quota of a node is not filled by offsets.
TEST_F(SpoolTest, RejectedChunkUsesNoQuota) {
  auto request = SpoolFixture::Request("n1", "logs", "");
  request.clear_size();
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(opened.ok());
  const std::string before = Used();
  EXPECT_EQ(ReasonOf(fixture_.SendAt(*opened, "n1", int64_t{1} << 30, "x")), "OFFSET_TOO_HIGH");
  EXPECT_EQ(Used(), before);
  ASSERT_TRUE(fixture_.OpenUpload(request).ok());
  EXPECT_EQ(ReasonOf(fixture_.SendAt(*opened, "n1", 0, "x")), "TAKEN_OVER");
  EXPECT_EQ(Used(), before);
}

// An upload whose bytes are not the announced ones cannot be resumed.
TEST_F(SpoolTest, UploadStartsAgainAfterADigestMismatch) {
  auto request = SpoolFixture::Request("n1", "facts", "");
  const auto empty = fixture_.OpenUpload(request);
  const std::string before = Used();
  fixture_.spool().DiscardUpload(request.description());
  request.set_size(static_cast<int64_t>(small_.size()));
  request.set_sha256(std::string(32, 'x'));
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", small_, small_.size()).ok());
  EXPECT_NE(Used(), before);
  EXPECT_EQ(ReasonOf(fixture_.Complete(*opened, "n1", "facts", small_)), "DIGEST_MISMATCH");
  EXPECT_EQ(Used(), before) << "its bytes are still charged";
  EXPECT_EQ(ReasonOf(fixture_.OpenUpload(request).status()), "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
}

TEST_F(SpoolTest, FailedRemovalStaysChargedAndIsRepeated) {
  fixture_.Close();
  sqlite::FaultVfs vfs;
  ASSERT_TRUE(fixture_.Open().ok());
  ASSERT_TRUE(fixture_.Deliver("n1", "logs", large_).ok());
  const std::string before = Used();
  ASSERT_EQ(fixture_.Next(), "n1/logs");
  vfs.FailAt(sqlite::Fault::kFullDisk, 1, /*for_good=*/true);
  fixture_.spool().Finish(*fixture_.delivery, "committed");
  EXPECT_EQ(fixture_.Next(), "");
  EXPECT_EQ(fixture_.Blobs().size(), 1u);
  EXPECT_EQ(Used(), before);
  fixture_.spool().Sweep();
  EXPECT_EQ(Used(), before);
  vfs.Clear();
  fixture_.spool().Sweep();
  EXPECT_TRUE(fixture_.Blobs().empty());
  EXPECT_THAT(fixture_.Metric(), HasSubstr("muster_relay_spool_bytes 0\n"));
  ASSERT_TRUE(fixture_.Open().ok());
  EXPECT_EQ(fixture_.Next(), "") << "a committed result is delivered again";
  fixture_.Close();
}

// The bytes of a large result are published before its row is written.
TEST_F(SpoolTest, RemovedUploadWhoseCommitFailedLeavesNoBlob) {
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
