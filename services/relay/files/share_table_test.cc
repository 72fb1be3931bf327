#include "services/relay/files/share_table.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/file_ops.h"
#include "services/common/store/sqlite/connection.h"

namespace muster {
namespace {

class ShareTableTest : public ::testing::Test {
 protected:
  ShareTableTest() {
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    Open();
  }
  ~ShareTableTest() override {
    table_.reset();
    RemoveTree(PosixFileOps(), folder_).IgnoreError();
  }

  void Open() {
    table_.reset();
    auto opened = ShareTable::Open(folder_ + "/shares.db");
    ASSERT_TRUE(opened.ok()) << opened.status();
    table_ = *std::move(opened);
  }

  // Changes the database while the table is closed.
  void Change(const std::string& sql) {
    table_.reset();
    {
      auto db =
          *sqlite::Connection::Open(folder_ + "/shares.db", sqlite::Connection::Access::kReadWrite);
      db->Execute(sql.c_str());
      EXPECT_TRUE(db->TakeStatus().ok());
    }
    Open();
  }

  static ShareRecord Record(const std::string& id, ShareStage stage = ShareStage::kHeld) {
    ShareRecord record;
    record.id = id;
    record.stage = stage;
    record.from_parent = true;
    record.child = "r2";
    record.share.set_state(v1::SHARE_STATE_IN_TRANSIT);
    record.share.mutable_file()->mutable_key()->set_id("f");
    record.share.mutable_file()->set_signature("s");
    record.share.mutable_file()->set_certificate_chain_pem("c");
    return record;
  }

  std::string folder_ = ::testing::TempDir() + "/table_XXXXXX";
  std::unique_ptr<ShareTable> table_;
};

TEST_F(ShareTableTest, RecordIsLoadedWithoutItsSignature) {
  ASSERT_TRUE(table_->PutHeld(Record("a"), "body", "").ok());
  Open();
  const auto contents = table_->Load();
  ASSERT_EQ(contents->rows.size(), 1u);
  const ShareTable::Row& row = contents->rows[0];
  EXPECT_EQ(row.record.id, "a");
  EXPECT_EQ(row.record.stage, ShareStage::kHeld);
  EXPECT_TRUE(row.record.from_parent);
  EXPECT_FALSE(row.record.unreported);
  EXPECT_EQ(row.record.child, "r2");
  EXPECT_EQ(row.record.share.state(), v1::SHARE_STATE_IN_TRANSIT);
  EXPECT_EQ(row.record.key().id(), "f");
  EXPECT_EQ(row.record.share.file().signature(), "");
  EXPECT_EQ(row.body_size, 4);
  EXPECT_EQ(*table_->ReadBody("a"), "body");
}

TEST_F(ShareTableTest, RecordWithoutASignatureKeepsTheStoredOne) {
  ASSERT_TRUE(table_->Put(Record("a")).ok());
  ShareRecord changed = Record("a");
  changed.share.set_state(v1::SHARE_STATE_DELIVERED);
  changed.share.mutable_file()->clear_signature();
  changed.share.mutable_file()->clear_certificate_chain_pem();
  ASSERT_TRUE(table_->Put(changed).ok());
  EXPECT_EQ(table_->ReadFile("a")->signature(), "s");
  EXPECT_EQ(table_->Load()->rows[0].record.share.state(), v1::SHARE_STATE_DELIVERED);
}

TEST_F(ShareTableTest, RecordWithoutBytesLosesThemInItsRow) {
  ASSERT_TRUE(table_->PutHeld(Record("a"), "body", "").ok());
  ASSERT_TRUE(table_->Put(Record("a")).ok());
  EXPECT_EQ(*table_->ReadBody("a"), "body");
  ASSERT_TRUE(table_->Put(Record("a", ShareStage::kPassedUp)).ok());
  EXPECT_EQ(*table_->ReadBody("a"), "");
}

TEST_F(ShareTableTest, HeldRecordReplacesTheEarlierOneInOneStep) {
  ASSERT_TRUE(table_->PutHeld(Record("a"), "old", "").ok());
  ASSERT_TRUE(table_->PutHeld(Record("b"), "new", "a").ok());
  const auto contents = table_->Load();
  ASSERT_EQ(contents->rows.size(), 1u);
  EXPECT_EQ(contents->rows[0].record.id, "b");
  EXPECT_TRUE(absl::IsNotFound(table_->ReadFile("a").status()));
  EXPECT_TRUE(absl::IsNotFound(table_->ReadBody("a").status()));
}

TEST_F(ShareTableTest, RemoveOfAnAbsentRowSucceeds) {
  ASSERT_TRUE(table_->Put(Record("a")).ok());
  EXPECT_TRUE(table_->Remove("a").ok());
  EXPECT_TRUE(table_->Remove("a").ok());
  EXPECT_TRUE(table_->Load()->rows.empty());
}

TEST_F(ShareTableTest, DamagedRowsAreListedAndOthersLoaded) {
  ASSERT_TRUE(table_->Put(Record("a")).ok());
  ASSERT_TRUE(table_->Put(Record("b")).ok());
  ASSERT_TRUE(table_->Put(Record("c")).ok());
  Change(
      "UPDATE shares SET state = x'00' WHERE id = 'a'; UPDATE shares SET stage = 9 WHERE id = 'c'");
  const auto contents = table_->Load();
  ASSERT_EQ(contents->rows.size(), 1u);
  EXPECT_EQ(contents->rows[0].record.id, "b");
  EXPECT_EQ(contents->damaged, (std::vector<std::string>{"a", "c"}));
  EXPECT_TRUE(absl::IsDataLoss(table_->ReadFile("a").status()));
}

}  // namespace
}  // namespace muster
