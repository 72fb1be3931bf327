#include "services/relay/spool/spool.h"

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/relay/testing/spool_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::SpoolFixture;

class SpoolTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.Open().ok()); }

  SpoolFixture rig_;
  const std::string small_ = Pattern(1000);
  const std::string large_ = Pattern(200'000);
};

TEST_F(SpoolTest, WhatItTookSurvivesItsProcessAndComesOutAsItWentIn) {
  ASSERT_TRUE(rig_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(rig_.Deliver("n1", "logs", large_).ok());
  ASSERT_TRUE(rig_.Open().ok());
  EXPECT_EQ(rig_.spool().waiting(), 2);
  ASSERT_EQ(rig_.Next(), "n1/facts");
  EXPECT_TRUE(rig_.Bytes() == small_);
  EXPECT_EQ(rig_.taken->header.description().file_name(), "facts.json");
  EXPECT_EQ(rig_.taken->header.crc32c(), Crc32c(small_));
  EXPECT_EQ(rig_.taken->header.spooled().size(), 1000);
  EXPECT_FALSE(rig_.taken->header.spooled().signature().value().empty());
  rig_.spool().Finish(*rig_.taken, "committed");
  ASSERT_TRUE(rig_.Open().ok());
  ASSERT_EQ(rig_.Next(), "n1/logs");
  EXPECT_TRUE(rig_.Bytes() == large_);
  EXPECT_TRUE(rig_.Bytes(150'000) == large_.substr(150'000));
  rig_.spool().Finish(*rig_.taken, "committed");
  EXPECT_EQ(rig_.Next(), "");
  EXPECT_THAT(rig_.Metric(), HasSubstr("muster_relay_spool_bytes 0\n"));
  EXPECT_EQ(rig_.disk.List("/spool/entries")->size(), 0u);
}

TEST_F(SpoolTest, ANodesResultsComeInOrderAndOneAtATimeAndNodesTakeTurns) {
  for (const char* plugin : {"c", "a", "b"}) ASSERT_TRUE(rig_.Deliver("n1", plugin, small_).ok());
  ASSERT_TRUE(rig_.Deliver("n2", "x", small_).ok());
  ASSERT_EQ(rig_.Next(), "n1/c");
  const SpoolDelivery first = *rig_.taken;
  ASSERT_EQ(rig_.Next(), "n2/x");
  const SpoolDelivery other = *rig_.taken;
  EXPECT_EQ(rig_.Next(), "");
  rig_.spool().PutBack(first, absl::Seconds(10));
  EXPECT_EQ(rig_.Next(), "");  // it waits
  rig_.spool().Finish(other, "committed");
  rig_.clock.Advance(absl::Seconds(11));
  ASSERT_EQ(rig_.Next(), "n1/c");
  rig_.spool().Finish(*rig_.taken, "refused");
  ASSERT_EQ(rig_.Next(), "n1/a");
  rig_.spool().Finish(*rig_.taken, "committed");
  ASSERT_EQ(rig_.Next(), "n1/b");
  EXPECT_THAT(rig_.Metric(),
              HasSubstr("muster_relay_spool_outcomes_total{outcome=\"refused\"} 1\n"));
}

TEST_F(SpoolTest, AnUploadGoesOnWhereItStoodAlsoAfterARestart) {
  auto opened = rig_.OpenUpload(SpoolFixture::Request("n1", "logs", large_));
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE(rig_.Send(*opened, "n1", large_, 100'000).ok());
  ASSERT_TRUE(rig_.Open().ok());
  EXPECT_EQ(rig_.Next(), "");
  opened = rig_.OpenUpload(SpoolFixture::Request("n1", "logs", large_));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->offset(), 100'000);
  ASSERT_TRUE(rig_.Send(*opened, "n1", large_, large_.size()).ok());
  EXPECT_FALSE(rig_.spool().Told(opened->upload_id()));
  ASSERT_TRUE(rig_.Complete(*opened, "n1", "logs", large_).ok());
  EXPECT_EQ(rig_.spool().Told(opened->upload_id())->relay(), "r1");
  ASSERT_EQ(rig_.Next(), "n1/logs");
  EXPECT_TRUE(rig_.Bytes() == large_);
}

TEST_F(SpoolTest, TheSameAgainIsThereAlreadyAndAnotherContentIsNotTaken) {
  ASSERT_TRUE(rig_.Deliver("n1", "facts", small_).ok());
  EXPECT_TRUE(rig_.spool().Holds(SpoolFixture::Request("n1", "facts", small_).description()));
  EXPECT_FALSE(rig_.spool().Holds(SpoolFixture::Request("n1", "facts", small_, 2).description()));
  const auto again = rig_.OpenUpload(SpoolFixture::Request("n1", "facts", small_));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->offset(), 1000);
  EXPECT_TRUE(rig_.spool().Told(again->upload_id()));
  EXPECT_EQ(ReasonOf(rig_.OpenUpload(SpoolFixture::Request("n1", "facts", "other")).status()),
            "TAKEN_OVER");
  EXPECT_TRUE(rig_.Deliver("n1", "facts", "other", 2).ok());
  EXPECT_EQ(rig_.spool().waiting(), 2);
}

TEST_F(SpoolTest, OnlyWhatTheNodeSignedIsTaken) {
  const auto opened = rig_.OpenUpload(SpoolFixture::Request("n1", "facts", small_));
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE(rig_.Send(*opened, "n1", small_, 1000).ok());
  EXPECT_EQ(ReasonOf(rig_.Complete(*opened, "n1", "facts", small_, 1, "")), "SIGNATURE_REQUIRED");
  const auto again = rig_.OpenUpload(SpoolFixture::Request("n1", "facts", small_));
  EXPECT_EQ(ReasonOf(rig_.Complete(*again, "n1", "facts", small_, 1, "n2")), "INVALID_SIGNATURE");
  EXPECT_EQ(rig_.spool().Find(opened->upload_id(), "n2").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(rig_.spool().waiting(), 0);
  const auto good = rig_.OpenUpload(SpoolFixture::Request("n1", "facts", small_));
  EXPECT_TRUE(rig_.Complete(*good, "n1", "facts", small_).ok());
  EXPECT_EQ(rig_.spool().waiting(), 1);
}

TEST_F(SpoolTest, UploadContinuesAfterABadSignature) {
  auto request = SpoolFixture::Request("n1", "logs", "");
  request.clear_size();
  const auto opened = rig_.OpenUpload(request);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE(rig_.Send(*opened, "n1", large_, 100'000).ok());
  const std::string half = large_.substr(0, 100'000);
  EXPECT_EQ(ReasonOf(rig_.Complete(*opened, "n1", "logs", half, 1, "n2")), "INVALID_SIGNATURE");
  const auto again = rig_.OpenUpload(request);
  EXPECT_EQ(again->offset(), 100'000);
  const absl::Status sent = rig_.Send(*again, "n1", large_, large_.size());
  EXPECT_TRUE(sent.ok()) << sent;
  EXPECT_TRUE(rig_.Complete(*again, "n1", "logs", large_).ok());
  ASSERT_EQ(rig_.Next(), "n1/logs");
  EXPECT_TRUE(rig_.Bytes() == large_);
}

TEST_F(SpoolTest, AFullSpoolSaysSoAndANodeCannotFillItForOthers) {
  rig_.options.quota_bytes = 1'000'000;
  rig_.options.max_entries = 12;
  ASSERT_TRUE(rig_.Open().ok());
  EXPECT_EQ(ReasonOf(rig_.Deliver("n1", "logs", Pattern(260'000))), "SPOOL_FULL");
  ASSERT_TRUE(rig_.Deliver("n1", "logs", large_).ok());
  const absl::Status full = rig_.Deliver("n1", "more", Pattern(50'000));
  EXPECT_EQ(ReasonOf(full), "SPOOL_FULL");
  EXPECT_TRUE(RetryAfterOf(full));
  for (const char* plugin : {"a", "b", "c"}) ASSERT_TRUE(rig_.Deliver("n2", plugin, "x").ok());
  EXPECT_EQ(ReasonOf(rig_.Deliver("n2", "d", "x")), "SPOOL_FULL");
  EXPECT_TRUE(rig_.Deliver("n3", "a", "x").ok());
  EXPECT_THAT(rig_.Metric(), HasSubstr("muster_relay_spool_refused_total 3\n"));
  // An upload that does not say how long it will be is stopped where the room ends.
  auto request = SpoolFixture::Request("n4", "logs", "");
  request.clear_size();
  const auto opened = rig_.OpenUpload(request);
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(ReasonOf(rig_.Send(*opened, "n4", Pattern(300'000), 300'000)), "SPOOL_FULL");
  // What left makes room.
  rig_.Next();
  rig_.spool().Finish(*rig_.taken, "committed");
  EXPECT_TRUE(rig_.Deliver("n1", "more", Pattern(50'000)).ok());
}

TEST_F(SpoolTest, WhatIsTooOldComesOutAsAnErrorWithItsReason) {
  EXPECT_THAT(rig_.Metric(), HasSubstr("muster_relay_spool_oldest_seconds 0\n"));
  ASSERT_TRUE(rig_.Deliver("n1", "facts", small_).ok());
  rig_.clock.Advance(absl::Hours(23));
  ASSERT_TRUE(rig_.Deliver("n2", "facts", small_).ok());
  rig_.clock.Advance(absl::Hours(1));
  EXPECT_THAT(rig_.Metric(), HasSubstr("muster_relay_spool_oldest_seconds 86400\n"));
  ASSERT_TRUE(rig_.Open().ok());
  ASSERT_EQ(rig_.Next(), "n1/facts");
  EXPECT_TRUE(rig_.taken->expired);
  EXPECT_THAT(rig_.taken->why, HasSubstr("relay r1 took this result at 2025-06-15"));
}

TEST_F(SpoolTest, AnUploadThatNobodyGoesOnWithIsForgotten) {
  ASSERT_TRUE(rig_.OpenUpload(SpoolFixture::Request("n1", "logs", large_)).ok());
  rig_.clock.Advance(absl::Minutes(59));
  rig_.spool().Sweep();
  EXPECT_THAT(rig_.Metric(), HasSubstr("muster_relay_spool_entries 1\n"));
  rig_.clock.Advance(absl::Minutes(2));
  rig_.spool().Sweep();
  EXPECT_THAT(rig_.Metric(), HasSubstr("muster_relay_spool_entries 0\n"));
  const auto opened = rig_.OpenUpload(SpoolFixture::Request("n1", "logs", large_));
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->offset(), 0);
  rig_.spool().DiscardUpload(SpoolFixture::Request("n1", "logs", large_).description());
  EXPECT_FALSE(rig_.spool().Has(opened->upload_id()));
}

// The entry's file is read, then its bytes: whichever fails, nothing is lost by it.
TEST_F(SpoolTest, ResultThatCannotBeReadNowIsDeliveredLater) {
  ASSERT_TRUE(rig_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(rig_.Deliver("n2", "logs", large_).ok());
  for (const auto call : {SimulatedDisk::Call::kOpen, SimulatedDisk::Call::kRead}) {
    for (int n = 1; n <= 5; ++n) {
      rig_.disk.FailAt(call, n, n % 2 == 0 ? EIO : EMFILE);
      for (int i = 0; i < 2; ++i) {
        if (rig_.Next().empty()) continue;
        EXPECT_FALSE(rig_.taken->expired) << rig_.taken->why;
        rig_.spool().PutBack(*rig_.taken, absl::ZeroDuration());
      }
      rig_.clock.Advance(absl::Minutes(1));
    }
  }
  EXPECT_EQ(rig_.spool().waiting(), 2);
  EXPECT_THAT(rig_.Metric(), HasSubstr("muster_relay_spool_outcomes_total{outcome=\"lost\"} 0\n"));
}

TEST_F(SpoolTest, EntryThatCannotBeReadAtTheStartStays) {
  ASSERT_TRUE(rig_.Deliver("n1", "facts", small_).ok());
  ASSERT_TRUE(rig_.Deliver("n2", "logs", large_).ok());
  const auto opened = rig_.OpenUpload(SpoolFixture::Request("n3", "logs", large_));
  ASSERT_TRUE(rig_.Send(*opened, "n3", large_, 100'000).ok());
  for (const auto call : {SimulatedDisk::Call::kOpen, SimulatedDisk::Call::kRead}) {
    for (int n = 1; n <= 5; ++n) {
      rig_.Close();
      rig_.disk.FailAt(call, n, EMFILE);
      rig_.Open().IgnoreError();  // the first call is the lock of the blobs
    }
  }
  ASSERT_TRUE(rig_.Open().ok());
  EXPECT_EQ(rig_.spool().waiting(), 2);
  EXPECT_EQ(rig_.OpenUpload(SpoolFixture::Request("n3", "logs", large_))->offset(), 100'000);
}

TEST_F(SpoolTest, ResultWhoseBytesAreGoneIsReportedLost) {
  ASSERT_TRUE(rig_.Deliver("n1", "logs", large_).ok());
  ASSERT_TRUE(RemoveTree(rig_.disk, "/spool/blobs").ok());
  ASSERT_EQ(rig_.Next(), "n1/logs");
  EXPECT_TRUE(rig_.taken->lost);
}

TEST_F(SpoolTest, LostBytesAreNeverDelivered) {
  ASSERT_TRUE(rig_.Deliver("n1", "facts", small_).ok());
  const std::string file = rig_.disk.List("/spool/entries")->front().name;
  rig_.disk.FlipBit("/spool/entries/" + file, 40);
  ASSERT_TRUE(rig_.Open().ok());
  EXPECT_EQ(rig_.Next(), "");
  EXPECT_THAT(rig_.Metric(), HasSubstr("muster_relay_spool_outcomes_total{outcome=\"lost\"} 1\n"));
}

}  // namespace
}  // namespace muster
