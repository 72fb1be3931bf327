// Undelivered results, without a runner.
#include "services/agent/collection/undelivered_results.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "services/client/attempt_state.h"
#include "services/common/base/fake_clock.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kRun[] = "0123456789abcdef";

bool NoneInUse(const ResultName&) { return false; }

class UndeliveredResultsTest : public ::testing::Test {
 protected:
  UndeliveredResultsTest() { fs::remove_all(folder_); }

  // Produces a result of `bytes` and more.
  ResultName Produce(const std::string& plugin, int64_t bytes = 1) {
    auto state = AgentState::Open(folder_, kRun, plugin, "n1").value();
    EXPECT_TRUE(state->MakeFolders().ok());
    const std::string path = state->results_dir() + "/result";
    std::ofstream(path) << std::string(static_cast<size_t>(bytes), 'x');
    EXPECT_TRUE(state->SetProduced({path, "text/plain"}).ok());
    return {kRun, plugin};
  }

  // Produces a result whose run ends a minute after the previous call.
  ResultName ProduceEnded(UndeliveredResults& results, const std::string& plugin,
                          int64_t bytes = 1) {
    clock_.Advance(absl::Minutes(1));
    const ResultName name = Produce(plugin, bytes);
    EXPECT_TRUE(results.Update(name));
    results.HandleEnd(name);
    return name;
  }

  UndeliveredResults Load() {
    return UndeliveredResults({.state_dir = folder_,
                               .node = "n1",
                               .max_results = max_results_,
                               .max_bytes = max_bytes_,
                               .clock = &clock_});
  }

  bool Exists(const std::string& plugin) const {
    return fs::exists(folder_ + "/" + client::StateName(kRun, plugin, "n1"));
  }

  const std::string folder_ = ::testing::TempDir() + "/undelivered_results_test";
  FakeClock clock_;
  size_t max_results_ = 10;
  int64_t max_bytes_ = 1'000'000;
};

TEST_F(UndeliveredResultsTest, BeyondTheNumberTheResultThatEndedFirstIsRemoved) {
  max_results_ = 3;
  UndeliveredResults results = Load();
  EXPECT_TRUE(results.Update(Produce("open")));
  ProduceEnded(results, "b");
  ProduceEnded(results, "a");
  EXPECT_TRUE(results.IsFull());
  results.RemoveDue(NoneInUse);
  EXPECT_FALSE(results.IsFull());
  EXPECT_FALSE(Exists("b"));
  EXPECT_TRUE(Exists("a"));
  EXPECT_TRUE(Exists("open"));
}

TEST_F(UndeliveredResultsTest, BeyondTheBytesTheResultThatEndedFirstIsRemoved) {
  UndeliveredResults results = Load();
  ProduceEnded(results, "b", max_bytes_ / 2);
  ProduceEnded(results, "a", max_bytes_ / 2);
  results.RemoveDue(NoneInUse);
  EXPECT_FALSE(Exists("b"));
  EXPECT_TRUE(Exists("a"));
}

TEST_F(UndeliveredResultsTest, ResultInUseOrOfAnOpenRunIsNotRemovedForSpace) {
  max_results_ = 2;
  UndeliveredResults results = Load();
  EXPECT_TRUE(results.Update(Produce("open")));
  const ResultName used = ProduceEnded(results, "used");
  results.RemoveDue([&](const ResultName& name) { return name == used; });
  EXPECT_TRUE(results.IsFull());
  EXPECT_TRUE(Exists("open"));
  EXPECT_TRUE(Exists("used"));
}

TEST_F(UndeliveredResultsTest, ResultThatAnotherProcessUsesIsRemovedLater) {
  UndeliveredResults results = Load();
  const ResultName name = ProduceEnded(results, "used");
  auto used = AgentState::Open(folder_, kRun, name.plugin, "n1").value();
  clock_.Advance(UndeliveredResults::kKeptAfterEnd);
  results.RemoveDue(NoneInUse);
  EXPECT_TRUE(Exists("used"));
  used.reset();
  clock_.Advance(results.UntilNextRemoval(NoneInUse));
  results.RemoveDue(NoneInUse);
  EXPECT_FALSE(Exists("used"));
}

TEST_F(UndeliveredResultsTest, DeliveredResultNeedsNoSpace) {
  max_results_ = 1;
  const ResultName name = Produce("a", 1'000);
  UndeliveredResults results = Load();
  EXPECT_TRUE(results.IsFull());
  ASSERT_TRUE(AgentState::Open(folder_, kRun, "a", "n1").value()->SetCommitted({}).ok());
  EXPECT_FALSE(results.Update(name));
  EXPECT_FALSE(results.IsFull());
}

TEST_F(UndeliveredResultsTest, ResultWithoutAnEndIsRemovedAfterTheLongestRun) {
  Produce("a");
  UndeliveredResults results = Load();
  clock_.Advance(UndeliveredResults::kKept - absl::Seconds(1));
  results.RemoveDue(NoneInUse);
  EXPECT_TRUE(Exists("a"));
  EXPECT_EQ(results.UntilNextRemoval(NoneInUse), absl::Seconds(1));
  clock_.Advance(absl::Seconds(1));
  ::testing::internal::CaptureStderr();  // the log
  results.RemoveDue(NoneInUse);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("older than any run"), std::string::npos);
  EXPECT_FALSE(Exists("a"));
  EXPECT_EQ(results.UntilNextRemoval(NoneInUse), absl::InfiniteDuration());
}

}  // namespace
}  // namespace muster
