#include "services/jobs/audit_outbox.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/rpc/proto_time.h"
#include "services/jobs/document_store.h"
#include "services/jobs/jobs_schema.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kOperator[] = "spiffe://fleet.test/user/ann";

class AuditOutboxTest : public ::testing::Test {
 protected:
  AuditOutboxTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Open();
  }

  void Open() {
    outbox_.reset();
    database_.reset();
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
    outbox_ = std::make_unique<AuditOutbox>(*database_);
  }

  void Add(const std::string& subject) {
    const absl::Status added = database_->Write([&](sqlite::Connection& db) {
      AddAuditRecord(db, v1::AUDIT_KIND_SECRET, {kOperator, ""}, subject, "stored", "version 1",
                     now_);
      return absl::OkStatus();
    });
    ASSERT_TRUE(added.ok()) << added;
  }

  std::vector<std::string> Subjects() {
    std::vector<std::string> subjects;
    const auto records = outbox_->List(100).value();
    for (const auto& record : records) {
      subjects.push_back(record.request.subject());
    }
    return subjects;
  }

  const std::string folder_ = ::testing::TempDir() + "/outbox";
  const absl::Time now_ = absl::FromUnixMicros(1'750'000'000'123'456);
  std::unique_ptr<sqlite::LocalDatabase> database_;
  std::unique_ptr<AuditOutbox> outbox_;
};

TEST_F(AuditOutboxTest, RecordStaysUntilItIsRemoved) {
  Add("a");
  Add("b");
  Open();
  const auto records = outbox_->List(1);
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 1u);
  const auto& request = records->front().request;
  EXPECT_EQ(request.subject(), "a");
  EXPECT_EQ(request.actor(), kOperator);
  EXPECT_EQ(FromProto(request.time()), now_);
  ASSERT_TRUE(outbox_->Remove(records->front()).ok());
  ASSERT_TRUE(outbox_->Remove(records->front()).ok()) << "again";
  Open();
  EXPECT_THAT(Subjects(), ElementsAre("b"));
}

// The record is part of the transaction of its change.
TEST_F(AuditOutboxTest, RefusedChangeHasNoRecord) {
  DocumentStore documents(*database_);
  const StoredDocument document = {"greet", "1.0.0", "{}", kOperator, 1, "gateway"};
  ASSERT_TRUE(documents.Put(DocumentKind::kType, document).ok());
  ASSERT_TRUE(documents.Put(DocumentKind::kType, document).ok()) << "it exists: no second record";
  StoredDocument other = document;
  other.document = "{\"a\":1}";
  EXPECT_EQ(ReasonOf(documents.Put(DocumentKind::kType, other).status()), "VERSION_EXISTS");
  const auto records = outbox_->List(10);
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->size(), 1u);
  const auto& request = records->front().request;
  EXPECT_EQ(request.kind(), v1::AUDIT_KIND_TEMPLATE);
  EXPECT_EQ(request.subject(), "greet@1.0.0");
  EXPECT_EQ(request.vouched_by(), "gateway");
  EXPECT_THAT(request.detail(), HasSubstr("template type, document sha256:"));
  const absl::Status undone = database_->Write([&](sqlite::Connection& db) {
    AddAuditRecord(db, v1::AUDIT_KIND_SECRET, {kOperator, ""}, "x", "stored", "", now_);
    return absl::InternalError("the change failed");
  });
  EXPECT_FALSE(undone.ok());
  EXPECT_EQ(outbox_->Count().value(), 1);
}

TEST_F(AuditOutboxTest, OldestRecordBeyondTheLimitIsLoggedAndRemoved) {
  const absl::Status filled = database_->Write([&](sqlite::Connection& db) {
    for (int64_t i = 0; i < kMaxOutbox; ++i) {
      AddAuditRecord(db, v1::AUDIT_KIND_SECRET, {kOperator, ""}, absl::StrCat("s", i), "stored", "",
                     now_);
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(filled.ok()) << filled;
  EXPECT_EQ(Subjects().front(), "s0");
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 150; ++i) Add("one more");  // more than one change removes
  const absl::Status undone = database_->Write([&](sqlite::Connection& db) {
    AddAuditRecord(db, v1::AUDIT_KIND_SECRET, {kOperator, ""}, "x", "stored", "", now_);
    return absl::InternalError("the change failed");
  });
  EXPECT_FALSE(undone.ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "logged by a change";

  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Subjects().front(), "s150");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("subject=s0 "));
  EXPECT_THAT(log, HasSubstr("subject=s149 "));
  EXPECT_THAT(log, Not(HasSubstr("subject=s150 ")));
  EXPECT_THAT(log, HasSubstr(kOperator));
  EXPECT_EQ(outbox_->Count().value(), kMaxOutbox);
}

TEST_F(AuditOutboxTest, LongDetailIsCut) {
  const absl::Status added = database_->Write([&](sqlite::Connection& db) {
    AddAuditRecord(db, v1::AUDIT_KIND_SECRET, {kOperator, ""}, "a", "stored",
                   std::string(5'000, 'x'), now_);
    return absl::OkStatus();
  });
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(outbox_->List(1)->front().request.detail().size(), 1'024u);
}

}  // namespace
}  // namespace muster
