#include "services/jobs/document_store.h"

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/store/sqlite/query_plan.h"
#include "services/jobs/jobs_schema.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class DocumentStoreTest : public ::testing::Test {
 protected:
  DocumentStoreTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
  }

  absl::Status Put(DocumentStore& store, const std::string& version, const std::string& creator) {
    return store.Put(DocumentKind::kType, {"greet", version, "{}", creator, 1}).status();
  }

  const std::string folder_ = ::testing::TempDir() + "/documents";
  std::unique_ptr<sqlite::LocalDatabase> database_;
};

// The documents of all versions have up to 240 MB.
TEST_F(DocumentStoreTest, VersionsAreCountedWithoutTheirDocuments) {
  DocumentStore store(*database_);
  ASSERT_TRUE(Put(store, "1.0.0", "ann").ok());
  std::string plan;
  ASSERT_TRUE(database_
                  ->Write([&](sqlite::Connection& db) {
                    plan = sqlite::QueryPlan(db, "count(*) FROM documents");
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_THAT(plan, HasSubstr("COVERING INDEX documents_of_creator (kind=?)"));
  EXPECT_THAT(plan, HasSubstr("COVERING INDEX documents_of_creator (kind=? AND created_by=?)"));
  EXPECT_THAT(plan, Not(HasSubstr("PRIMARY KEY")));
}

TEST_F(DocumentStoreTest, VersionsAreBoundedForOneCreatorAndInAll) {
  DocumentStore store(*database_, 4);
  ASSERT_TRUE(Put(store, "1.0.0", "ann").ok());
  ASSERT_TRUE(Put(store, "1.0.1", "ann").ok());
  EXPECT_EQ(ReasonOf(Put(store, "1.0.2", "ann")), "TOO_MANY_VERSIONS");
  EXPECT_TRUE(Put(store, "1.0.1", "ann").ok());  // it exists
  ASSERT_TRUE(Put(store, "1.0.2", "bob").ok());
  ASSERT_TRUE(Put(store, "1.0.3", "bob").ok());
  EXPECT_EQ(ReasonOf(Put(store, "1.0.4", "eve")), "TOO_MANY_VERSIONS");
  // Templates have their own limit.
  EXPECT_TRUE(store.Put(DocumentKind::kTemplate, {"greet", "1.0.0", "{}", "eve", 1}).ok());
}

TEST_F(DocumentStoreTest, PagesOfOneNameHaveNoOthers) {
  DocumentStore store(*database_);
  for (const char* name : {"a", "b", "c"}) {
    for (const char* version : {"1.0.0", "1.1.0"}) {
      ASSERT_TRUE(store.Put(DocumentKind::kType, {name, version, "{}", "ann", 1}).ok());
    }
  }
  std::string next;
  const auto first = store.List(DocumentKind::kType, "b", "", 1, &next);
  ASSERT_TRUE(first.ok());
  ASSERT_EQ(first->size(), 1u);
  EXPECT_EQ(first->front().version, "1.1.0");
  EXPECT_EQ(next, "b/1.1.0");
  const auto second = store.List(DocumentKind::kType, "b", next, 1, &next);
  ASSERT_EQ(second->size(), 1u);
  EXPECT_EQ(second->front().version, "1.0.0");
  EXPECT_EQ(next, "");
}

}  // namespace
}  // namespace muster
