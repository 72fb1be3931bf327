// Tests of SqliteStoreOptions::check_data.
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "services/common/store/sqlite/connection.h"
#include "services/common/store/sqlite/sqlite_harness.h"

namespace muster {
namespace {

// A store whose check of data refuses on demand.
class DataCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    harness_.options().check_data = [this](int64_t bytes) {
      checked_.push_back(bytes);
      return verdict_;
    };
    ASSERT_TRUE(harness_.Open().ok());
  }
  ~DataCheckTest() override { harness_.Close(); }

  template <typename C>
  absl::StatusOr<typename C::Result> Apply(C command) {
    checked_.clear();
    return harness_.state().ApplyAndWait(std::move(command));
  }

  int64_t CountPairs() {
    const auto db =
        *sqlite::Connection::Open(harness_.path(), sqlite::Connection::Access::kReadOnly);
    sqlite::Rows rows = db->Query("SELECT count(*) FROM pairs");
    return rows.Next() ? rows.Int() : -1;
  }

  const absl::Status no_ = absl::ResourceExhaustedError("no");
  std::vector<int64_t> checked_;  // by the last command
  absl::Status verdict_;
  SqliteHarness harness_;
};

TEST_F(DataCheckTest, DataIsCheckedBeforeItIsCommitted) {
  ASSERT_TRUE(Apply(MakeRun(kRun, {{"facts", "n1"}})).ok());
  EXPECT_EQ(checked_.size(), 1u);
  verdict_ = no_;
  EXPECT_EQ(Apply(Genuine(KeyOf("n1"), std::string(5000, 'x'))).status(), no_);
  ASSERT_FALSE(checked_.empty());
  EXPECT_GT(checked_[0], 5000);
  EXPECT_EQ((*harness_.state().GetResult(KeyOf("n1")))->outcome, Outcome::kPending);
  EXPECT_EQ((*harness_.state().GetRun(kRun))->run.pending, 1);
  EXPECT_TRUE(Apply(EndRun{.run = kRun, .state = RunState::kFailed}).ok());
  EXPECT_TRUE(checked_.empty());
  EXPECT_TRUE(Apply(DeleteRun{.run = kRun}).ok());
  EXPECT_TRUE(checked_.empty());
}

TEST_F(DataCheckTest, RepetitionThatStoresNothingIsNotRefused) {
  ASSERT_TRUE(Apply(MakeRun(kRun, {{"facts", "n1"}})).ok());
  ASSERT_TRUE(Apply(Genuine(KeyOf("n1"), "content")).ok());
  verdict_ = no_;
  const auto again = Apply(Genuine(KeyOf("n1"), "content"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->verdict, CommitResult::Verdict::kSame);
  const auto created = Apply(MakeRun(kRun, {{"facts", "n1"}}));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_TRUE(created->existed);
}

TEST_F(DataCheckTest, LargePlanIsRefusedWithoutATrace) {
  std::vector<PlannedPair> pairs;
  for (int i = 0; i < 10'000; ++i) pairs.push_back({"facts", absl::StrCat("n", i)});
  verdict_ = no_;
  EXPECT_EQ(Apply(MakeRun(kRun, pairs)).status(), no_);
  EXPECT_EQ(CountPairs(), 0);
  verdict_ = absl::OkStatus();
  ASSERT_TRUE(Apply(MakeRun(kRun, pairs)).ok());
  ASSERT_FALSE(checked_.empty());
  EXPECT_GT(checked_[0], 10'000 * 100);
  verdict_ = no_;
  EXPECT_TRUE(Apply(MakeRun(kRun, pairs))->existed);
}

TEST(DataCheckThreadTest, CheckDoesNotBlockTheCaller) {
  SqliteHarness harness;
  const auto caller = std::this_thread::get_id();
  std::promise<void> release;
  bool blocks = false;
  harness.options().check_data = [&](int64_t) {
    EXPECT_NE(std::this_thread::get_id(), caller);
    if (blocks && std::this_thread::get_id() != caller) release.get_future().wait();
    return absl::OkStatus();
  };
  ASSERT_TRUE(harness.Open().ok());
  ASSERT_TRUE(harness.state().ApplyAndWait(MakeRun(kRun, {{"facts", "n1"}})).ok());
  blocks = true;
  std::promise<absl::Status> committed;
  harness.state().Apply(Genuine(KeyOf("n1"), "content"),
                        [&](const auto& result) { committed.set_value(result.status()); });
  release.set_value();
  EXPECT_TRUE(committed.get_future().get().ok());
  harness.Close();
}

}  // namespace
}  // namespace muster
