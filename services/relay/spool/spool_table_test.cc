#include "services/relay/spool/spool_table.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"

namespace muster {
namespace {

class SpoolTableTest : public ::testing::Test {
 protected:
  SpoolTableTest() {
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    Open();
  }
  ~SpoolTableTest() override {
    table_.reset();
    RemoveTree(PosixFileOps(), folder_).IgnoreError();
  }

  void Open() {
    table_.reset();
    auto opened = SpoolTable::Open(folder_ + "/spool.db");
    ASSERT_TRUE(opened.ok()) << opened.status();
    table_ = *std::move(opened);
  }

  static v1::SubmitResultRequest Header(const std::string& plugin) {
    v1::SubmitResultRequest header;
    header.mutable_description()->mutable_key()->set_plugin(plugin);
    return header;
  }

  // "id" of an upload, "id!" of a complete result.
  std::vector<std::string> Ids() {
    std::vector<std::string> ids;
    const auto contents = table_->Load();
    EXPECT_TRUE(contents.ok()) << contents.status();
    for (const SpoolRow& row : contents->rows) ids.push_back(row.id + (row.complete ? "!" : ""));
    return ids;
  }

  using Strings = std::vector<std::string>;

  std::string folder_ = ::testing::TempDir() + "/table_XXXXXX";
  std::unique_ptr<SpoolTable> table_;
};

TEST_F(SpoolTableTest, CompleteResultsLoadInTheOrderOfTheirCompletion) {
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(table_->AddUpload(id, Header(id)).ok());
  ASSERT_TRUE(table_->Complete("c", Header("c"), "").ok());
  ASSERT_TRUE(table_->Complete("a", Header("a"), "").ok());
  EXPECT_EQ(Ids(), (Strings{"c!", "a!", "b"}));
  Open();
  EXPECT_EQ(Ids(), (Strings{"c!", "a!", "b"}));
}

TEST_F(SpoolTableTest, HeaderAndBodyAreReadAsTheyWereWritten) {
  const std::string body("a\0b", 3);
  ASSERT_TRUE(table_->AddUpload("a", Header("x")).ok());
  ASSERT_TRUE(table_->Complete("a", Header("y"), body).ok());
  EXPECT_EQ(table_->ReadHeader("a")->description().key().plugin(), "y");
  EXPECT_EQ(*table_->ReadBody("a"), body);
  EXPECT_TRUE(absl::IsNotFound(table_->ReadHeader("b").status()));
}

TEST_F(SpoolTableTest, AddUploadKeepsACompleteResult) {
  ASSERT_TRUE(table_->AddUpload("a", Header("x")).ok());
  ASSERT_TRUE(table_->Complete("a", Header("y"), "body").ok());
  ASSERT_TRUE(table_->AddUpload("a", Header("x")).ok());
  EXPECT_EQ(Ids(), Strings{"a!"});
}

TEST_F(SpoolTableTest, CompleteWithoutAnUploadFails) {
  EXPECT_TRUE(absl::IsNotFound(table_->Complete("a", Header("x"), "")));
  ASSERT_TRUE(table_->AddUpload("a", Header("x")).ok());
  ASSERT_TRUE(table_->Remove("a").ok());
  ASSERT_TRUE(table_->Remove("a").ok());
  EXPECT_EQ(ReasonOf(table_->Complete("a", Header("x"), "")), "UPLOAD_NOT_FOUND");
  EXPECT_EQ(Ids(), Strings{});
}

}  // namespace
}  // namespace muster
