// Uploads into the spool until they are complete.
#include <filesystem>
#include <future>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/rpc/limits.h"
#include "services/common/upload/upload_pace.h"
#include "services/relay/testing/spool_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::SpoolFixture;

using SpoolUploadTest = testing::SpoolTestBase;

TEST_F(SpoolUploadTest, UploadIsResumedAfterARestart) {
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

TEST_F(SpoolUploadTest, WindowIsSmallerWithEachOpenUpload) {
  const auto window = [&](int node) {
    const auto opened =
        fixture_.OpenUpload(SpoolFixture::Request(absl::StrCat("n", node), "logs", large_));
    return opened.ok() ? opened->window() : 0;
  };
  for (int node = 1; node <= 16; ++node) {
    const int share = kUploadWindowLarge / node;
    ASSERT_EQ(window(node), node <= kFewUploads ? share : share / 2) << node;
  }
  EXPECT_EQ(window(17), kUploadWindowSmall);
}

TEST_F(SpoolUploadTest, AttemptOutsideOfItsRangeFails) {
  for (const int64_t attempt : {int64_t{0}, INT64_MAX}) {
    const auto opened = fixture_.OpenUpload(SpoolFixture::Request("n1", "logs", small_, attempt));
    EXPECT_EQ(ReasonOf(opened.status()), "INVALID_ATTEMPT") << attempt;
  }
}

TEST_F(SpoolUploadTest, ResultWithoutTheSignatureOfItsNodeIsRejected) {
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

TEST_F(SpoolUploadTest, SignatureCoversMediaTypeAndFileName) {
  const auto complete = [&](const v1::OpenUploadRequest& request) {
    const auto opened = fixture_.OpenUpload(request);
    EXPECT_TRUE(fixture_.Send(*opened, "n1", small_, small_.size()).ok());
    return ReasonOf(fixture_.Complete(*opened, "n1", "facts", small_));
  };
  auto request = SpoolFixture::Request("n1", "facts", small_);
  request.mutable_description()->set_media_type("application/gzip");
  EXPECT_EQ(complete(request), "INVALID_SIGNATURE");
  request = SpoolFixture::Request("n1", "facts", small_);
  request.mutable_description()->set_file_name("other.json");
  EXPECT_EQ(complete(request), "INVALID_SIGNATURE");
  EXPECT_EQ(fixture_.spool().waiting(), 0);
  EXPECT_EQ(complete(SpoolFixture::Request("n1", "facts", small_)), "");
}

TEST_F(SpoolUploadTest, UploadContinuesAfterABadSignature) {
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

TEST_F(SpoolUploadTest, IdleUploadIsRemoved) {
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

TEST_F(SpoolUploadTest, IdleUploadsHoldNoFilesAndAreResumed) {
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

TEST_F(SpoolUploadTest, JumpOfTheWallClockRemovesNoUpload) {
  const auto request = SpoolFixture::Request("n1", "logs", large_);
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", large_, 100'000).ok());
  ASSERT_TRUE(fixture_.OpenUpload(request).ok());
  fixture_.clock.JumpWall(fixture_.clock.Now() + absl::Hours(12));
  fixture_.spool().Sweep();
  EXPECT_EQ(fixture_.OpenUpload(request)->offset(), 100'000);
}

TEST_F(SpoolUploadTest, ResultHasTheDescriptionOfTheLastOpen) {
  auto request = SpoolFixture::Request("n1", "facts", small_);
  request.mutable_description()->set_file_name("old.json");
  ASSERT_TRUE(fixture_.OpenUpload(request).ok());
  request.mutable_description()->set_file_name("new.json");
  fixture_.signed_file_name = "new.json";
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", small_, small_.size()).ok());
  ASSERT_TRUE(fixture_.Complete(*opened, "n1", "facts", small_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/facts");
  EXPECT_EQ(fixture_.delivery->header.description().file_name(), "new.json");
}

// The open waits for the strand of the upload, which completes it.
TEST_F(SpoolUploadTest, OpenDuringTheCommitLeavesTheSignedDescription) {
  auto request = SpoolFixture::Request("n1", "facts", small_);
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", small_, small_.size()).ok());
  request.mutable_description()->set_media_type("text/plain");
  request.mutable_description()->set_file_name("late.json");
  std::promise<absl::Status> late;
  fixture_.before_complete = [&] {
    fixture_.spool().OpenUpload(request, SpoolFixture::Peer("n1"),
                                [&](const auto& answer) { late.set_value(answer.status()); });
  };
  ASSERT_TRUE(fixture_.Complete(*opened, "n1", "facts", small_).ok());
  EXPECT_EQ(ReasonOf(late.get_future().get()), "UPLOAD_NOT_FOUND");
  ASSERT_EQ(fixture_.Next(), "n1/facts");
  const v1::ResultDescription& description = fixture_.delivery->header.description();
  EXPECT_EQ(description.media_type(), SpoolFixture::kMediaType);
  EXPECT_EQ(description.file_name(), SpoolFixture::kFileName);
}

// A chunk must be verified before it is charged: the quota of a node is not filled by offsets.
TEST_F(SpoolUploadTest, RejectedChunkUsesNoQuota) {
  auto request = SpoolFixture::Request("n1", "logs", "");
  request.clear_size();
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(opened.ok());
  const std::string before = fixture_.Used();
  EXPECT_EQ(ReasonOf(fixture_.SendAt(*opened, "n1", int64_t{1} << 30, "x")), "OFFSET_TOO_HIGH");
  EXPECT_EQ(fixture_.Used(), before);
  ASSERT_TRUE(fixture_.OpenUpload(request).ok());
  EXPECT_EQ(ReasonOf(fixture_.SendAt(*opened, "n1", 0, "x")), "TAKEN_OVER");
  EXPECT_EQ(fixture_.Used(), before);
}

// An upload whose bytes are not the announced ones cannot be resumed.
TEST_F(SpoolUploadTest, UploadStartsAgainAfterADigestMismatch) {
  auto request = SpoolFixture::Request("n1", "facts", "");
  const auto empty = fixture_.OpenUpload(request);
  const std::string before = fixture_.Used();
  fixture_.spool().DiscardUpload(request.description());
  request.set_size(static_cast<int64_t>(small_.size()));
  request.set_sha256(std::string(32, 'x'));
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", small_, small_.size()).ok());
  EXPECT_NE(fixture_.Used(), before);
  EXPECT_EQ(ReasonOf(fixture_.Complete(*opened, "n1", "facts", small_)), "DIGEST_MISMATCH");
  EXPECT_EQ(fixture_.Used(), before) << "its bytes are still charged";
  EXPECT_EQ(ReasonOf(fixture_.OpenUpload(request).status()), "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
}

TEST_F(SpoolUploadTest, UploadStartsAgainIfMoreBytesAreStoredThanAnnounced) {
  auto request = SpoolFixture::Request("n1", "facts", "");
  request.clear_size();
  const auto opened = fixture_.OpenUpload(request);
  ASSERT_TRUE(fixture_.Send(*opened, "n1", large_, large_.size()).ok());
  request.set_size(static_cast<int64_t>(small_.size()));
  EXPECT_EQ(ReasonOf(fixture_.OpenUpload(request).status()), "UPLOAD_NOT_FOUND");
  EXPECT_TRUE(fixture_.Deliver("n1", "facts", small_).ok());
  ASSERT_EQ(fixture_.Next(), "n1/facts");
  EXPECT_TRUE(fixture_.Bytes() == small_);
}

}  // namespace
}  // namespace muster
