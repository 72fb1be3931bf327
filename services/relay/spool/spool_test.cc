#include "services/relay/spool/spool.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/relay/testing/spool_fixture.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using testing::SpoolFixture;

using SpoolTest = testing::SpoolTestBase;

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
  fixture_.spool().Requeue(first,
                           WithRetryAfter(absl::UnavailableError("overloaded"), absl::Seconds(10)));
  EXPECT_EQ(fixture_.Next(), "");  // its node waits
  fixture_.spool().Finish(other, "committed");
  fixture_.clock.Advance(absl::Seconds(12));
  // The others come first now: a full run delays no other run.
  ASSERT_EQ(fixture_.Next(), "n1/a");
  fixture_.spool().Finish(*fixture_.delivery, "committed");
  ASSERT_EQ(fixture_.Next(), "n1/b");
  fixture_.spool().Finish(*fixture_.delivery, "committed");
  ASSERT_EQ(fixture_.Next(), "n1/c");
  fixture_.spool().Finish(*fixture_.delivery, "refused");
  EXPECT_THAT(fixture_.Metric(),
              HasSubstr("muster_relay_spool_outcomes_total{outcome=\"refused\"} 1\n"));
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

}  // namespace
}  // namespace muster
