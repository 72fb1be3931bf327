#include "services/relay/files/share_records.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/upload/testing/unused_sessions.h"

namespace muster {
namespace {

class ShareRecordsTest : public ::testing::Test {
 protected:
  ShareRecord Record(const std::string& id, int64_t size, const std::string& key = "f",
                     const std::string& source = "n1") {
    ShareRecord record;
    record.id = id;
    record.stage = ShareStage::kHeld;
    v1::SharedFile& file = *record.share.mutable_file();
    file.mutable_key()->set_source(source);
    file.mutable_key()->set_target("n2");
    file.mutable_key()->set_id(key);
    file.set_size(size);
    file.set_signature("s");
    return record;
  }

  ShareUpload Upload(ShareRecord record) {
    record.stage = ShareStage::kIncoming;
    return {record, sessions_.Make(record.id)};
  }

  std::string Usage() const {
    return absl::StrCat(records_.usage().files, " files, ", records_.usage().bytes, " bytes");
  }

  FakeClock clock_;
  testing::UnusedSessions sessions_{clock_};
  ShareRecords records_{clock_, {1000, 2, 1000}};
};

TEST_F(ShareRecordsTest, KeyHasOneRecordWhoseRevisionRises) {
  records_.Put(Record("a", 10));
  const ShareRecord first = *records_.Find(Record("a", 10).key());
  EXPECT_TRUE(first.share.file().signature().empty());
  EXPECT_TRUE(records_.IsCurrent(first));
  records_.Put(Record("a", 10));
  EXPECT_FALSE(records_.IsCurrent(first));
  records_.Put(Record("b", 20));
  EXPECT_EQ(records_.Find(first.key())->id, "b");
  EXPECT_EQ(Usage(), "1 files, 20 bytes");
  records_.Erase(first);
  EXPECT_EQ(Usage(), "1 files, 20 bytes");
  records_.Erase(Record("b", 20));
  EXPECT_FALSE(records_.Find(first.key()));
  EXPECT_EQ(Usage(), "0 files, 0 bytes");
}

TEST_F(ShareRecordsTest, EndedRecordUsesNoQuota) {
  ShareRecord record = Record("a", 10);
  records_.Put(record);
  record.stage = ShareStage::kPassedUp;
  records_.Put(record);
  EXPECT_EQ(Usage(), "0 files, 0 bytes");
  EXPECT_TRUE(records_.Find(record.key()));
}

TEST_F(ShareRecordsTest, ExpiredRecordIsReturnedAsExpired) {
  ShareRecord record = Record("a", 10);
  record.share.mutable_file()->mutable_expire_time()->set_seconds(
      absl::ToUnixSeconds(clock_.Now()) + 10);
  records_.Put(record);
  EXPECT_EQ(records_.Find(record.key())->stage, ShareStage::kHeld);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(records_.Find(record.key())->share.state(), v1::SHARE_STATE_EXPIRED);
  EXPECT_EQ(records_.Stored(record.key())->stage, ShareStage::kHeld);
}

TEST_F(ShareRecordsTest, SelectReturnsAPageInOrder) {
  for (const char* key : {"c", "a", "b", "d"}) records_.Put(Record(key, 1, key));
  const auto page = records_.Select({"n1", "n2", "a"}, 2, [](const auto&) { return true; });
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].id, "b");
  EXPECT_EQ(page[1].id, "c");
}

TEST_F(ShareRecordsTest, UploadIsCountedBesideTheRecordOfItsKey) {
  records_.Put(Record("a", 10));
  records_.AddUpload(Upload(Record("b", 30)));
  EXPECT_EQ(Usage(), "2 files, 40 bytes");
  EXPECT_EQ(records_.ReopenUpload(Record("b", 30))->epoch, 1);
  EXPECT_EQ(records_.ReopenUpload(Record("b", 30))->epoch, 2);
  EXPECT_EQ(records_.FindUpload("b")->epoch, 2);
  EXPECT_FALSE(records_.FindUpload("a"));
  EXPECT_TRUE(records_.RemoveUpload(Record("b", 30).key()));
  EXPECT_FALSE(records_.RemoveUpload(Record("b", 30).key()));
  EXPECT_EQ(Usage(), "1 files, 10 bytes");
  EXPECT_TRUE(records_.Find(Record("a", 10).key()));
}

TEST_F(ShareRecordsTest, LimitsIncludeUploads) {
  EXPECT_TRUE(records_.CheckLimits(Record("a", 1000).share.file()).ok());
  EXPECT_EQ(ReasonOf(records_.CheckLimits(Record("a", 1001).share.file())), "SHARE_QUOTA");
  records_.AddUpload(Upload(Record("a", 600)));
  EXPECT_EQ(ReasonOf(records_.CheckLimits(Record("b", 401, "g", "n9").share.file())),
            "SHARE_QUOTA");
  EXPECT_TRUE(records_.CheckLimits(Record("b", 400, "g", "n9").share.file()).ok());
  records_.Put(Record("b", 1, "g", "n9"));
  EXPECT_EQ(ReasonOf(records_.CheckLimits(Record("c", 1, "h", "n8").share.file())), "SHARE_QUOTA");
}

TEST_F(ShareRecordsTest, OneSourceMayUse16Uploads) {
  ShareRecords records(clock_, {1'000'000, 1000, 1000});
  for (int i = 0; i < 16; ++i) {
    records.AddUpload(Upload(Record(absl::StrCat("u", i), 1, absl::StrCat("f", i))));
  }
  EXPECT_EQ(ReasonOf(records.CheckLimits(Record("x", 1, "x").share.file())), "TOO_MANY_UPLOADS");
  EXPECT_TRUE(records.CheckLimits(Record("x", 1, "x", "n9").share.file()).ok());
}

TEST_F(ShareRecordsTest, OneSourceMayUseHalfOfTheQuotaOrStoreTheLargestFile) {
  ShareRecords records(clock_, {1000, 100, 200});
  records.Put(Record("a", 300));
  EXPECT_TRUE(records.CheckLimits(Record("b", 200, "g").share.file()).ok());
  EXPECT_EQ(ReasonOf(records.CheckLimits(Record("b", 201, "g").share.file())), "SHARE_QUOTA");
  EXPECT_TRUE(records.CheckLimits(Record("b", 201, "g", "n9").share.file()).ok());
  ShareRecords large(clock_, {1000, 100, 900});
  EXPECT_TRUE(large.CheckLimits(Record("b", 900, "g").share.file()).ok());
}

TEST_F(ShareRecordsTest, OneSourceMayUseHalfOfTheFiles) {
  ShareRecords records(clock_, {1000, 4, 100});
  records.Put(Record("a", 1, "f"));
  records.Put(Record("b", 1, "g"));
  EXPECT_EQ(ReasonOf(records.CheckLimits(Record("c", 1, "h").share.file())), "SHARE_QUOTA");
  EXPECT_TRUE(records.CheckLimits(Record("c", 1, "h", "n9").share.file()).ok());
  records.Erase(Record("a", 1, "f"));
  EXPECT_TRUE(records.CheckLimits(Record("c", 1, "h").share.file()).ok());
}

// Records of ended files stay for a week.
TEST_F(ShareRecordsTest, OneSourceDoesNotUseAllRecords) {
  ShareRecords records(clock_, {1000, 4, 100});
  for (int i = 0; i < 8; ++i) {
    ShareRecord ended = Record(absl::StrCat("e", i), 1, absl::StrCat("f", i));
    EXPECT_TRUE(records.CheckLimits(ended.share.file()).ok());
    ended.stage = ShareStage::kEnded;
    records.Put(ended);
  }
  EXPECT_EQ(ReasonOf(records.CheckLimits(Record("x", 1, "x").share.file())), "SHARE_QUOTA");
  EXPECT_TRUE(records.CheckLimits(Record("x", 1, "f0").share.file()).ok());
  EXPECT_TRUE(records.CheckLimits(Record("x", 1, "x", "n9").share.file()).ok());
}

TEST_F(ShareRecordsTest, OldestEndedRecordIsForgottenAtTheLimitOfItsSource) {
  ShareRecords records(clock_, {1000, 4, 100});
  const v1::SharedFile fresh = Record("x", 1, "x").share.file();
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(records.FindForgettable(fresh));
    ShareRecord record = Record(absl::StrCat("e", i), 1, absl::StrCat("f", i));
    record.stage = i == 0  ? ShareStage::kPassedDown
                   : i < 4 ? ShareStage::kPassedUp
                           : ShareStage::kEnded;
    record.unreported = i == 4;
    record.share.mutable_change_time()->set_seconds(i);
    records.Put(record);
  }
  std::string forgotten;
  while (const auto record = records.FindForgettable(fresh)) {
    absl::StrAppend(&forgotten, record->id, " ");
    records.Erase(*record);
    records.Put(Record("held", 1, record->id));
  }
  EXPECT_EQ(forgotten, "e5 e6 e7 e1 e2 e3 ");
  EXPECT_FALSE(records.FindForgettable(Record("x", 1, "f0").share.file()));
}

TEST_F(ShareRecordsTest, OldestEndedRecordOfAllIsForgottenAtTheLimit) {
  ShareRecords records(clock_, {1000, 2, 100});
  for (int i = 0; i < 8; ++i) {
    ShareRecord record = Record(absl::StrCat("e", i), 1, absl::StrCat("f", i), i < 4 ? "n1" : "n8");
    record.stage = ShareStage::kEnded;
    record.share.mutable_change_time()->set_seconds(10 - i);
    records.Put(record);
  }
  const v1::SharedFile fresh = Record("x", 1, "x", "n9").share.file();
  EXPECT_EQ(ReasonOf(records.CheckLimits(fresh)), "SHARE_QUOTA");
  EXPECT_EQ(records.FindForgettable(fresh)->id, "e7");
  records.Erase(*records.FindForgettable(fresh));
  EXPECT_TRUE(records.CheckLimits(fresh).ok());
}

TEST_F(ShareRecordsTest, RecordIsNotForgottenDuringAnUploadOfItsKey) {
  ShareRecords records(clock_, {1000, 2, 100});
  for (const char* id : {"a", "b", "c", "d"}) {
    ShareRecord record = Record(id, 1, id);
    record.stage = ShareStage::kEnded;
    records.Put(record);
  }
  const v1::SharedFile fresh = Record("x", 1, "x").share.file();
  records.AddUpload(Upload(Record("again", 1, "a")));
  EXPECT_EQ(records.FindForgettable(fresh)->id, "b");
  records.RemoveUpload(Record("again", 1, "a").key());
  EXPECT_EQ(records.FindForgettable(fresh)->id, "a");
}

TEST_F(ShareRecordsTest, JumpOfTheWallClockMakesNoUploadIdle) {
  records_.AddUpload(Upload(Record("a", 10)));
  clock_.JumpWall(clock_.Now() + absl::Hours(12));
  EXPECT_TRUE(records_.IdleUploads(absl::Hours(1)).empty());
}

TEST_F(ShareRecordsTest, UploadWithoutAStreamBecomesIdle) {
  records_.AddUpload(Upload(Record("a", 10)));
  clock_.Advance(absl::Hours(1));
  EXPECT_TRUE(records_.IdleUploads(absl::Hours(1)).empty());
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(records_.IdleUploads(absl::Hours(1)).size(), 1u);
  records_.ReopenUpload(Record("a", 10));
  EXPECT_TRUE(records_.IdleUploads(absl::Hours(1)).empty());
}

}  // namespace
}  // namespace muster
