// Tests which states of an agent remain.
#include "services/agent/agent_state.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "services/client/attempt_state.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kRun[] = "0123456789abcdef";

class AgentStateTest : public ::testing::Test {
 protected:
  AgentStateTest() : base_(::testing::TempDir() + "/agent_state_test") { fs::remove_all(base_); }

  std::unique_ptr<AgentState> Open(const std::string& plugin) {
    return AgentState::Open(base_, kRun, plugin, "n1").value();
  }

  std::string Folder(const std::string& plugin) const {
    return base_ + "/" + client::StateName(kRun, plugin, "n1");
  }

  // Opens a state with a result that is not delivered.
  std::unique_ptr<AgentState> Produce(const std::string& plugin) {
    auto state = Open(plugin);
    EXPECT_TRUE(state->MakeFolders().ok());
    const std::string result = state->results_dir() + "/result";
    std::ofstream(result) << "bytes";
    EXPECT_TRUE(state->SetProduced({result, "text/plain"}).ok());
    return state;
  }

  // As a clock that is far ahead shows them.
  void MakeAllOld() const { MakeAllOlderBy(std::chrono::days(41)); }
  void MakeAllOlderBy(std::chrono::hours age) const {
    for (const auto& entry : fs::directory_iterator(base_)) {
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - age);
    }
  }

  const std::string base_;
};

TEST_F(AgentStateTest, OldStateInUseRemains) {
  const auto working = Open("working");
  ASSERT_TRUE(working->MakeFolders().ok());
  MakeAllOld();
  Open("new");
  EXPECT_TRUE(fs::exists(working->results_dir()));
}

TEST_F(AgentStateTest, UndeliveredResultRemains) {
  Produce("produced");
  MakeAllOld();
  Open("new");
  EXPECT_EQ(Open("produced")->phase(), AgentPhase::kProduced);
}

TEST_F(AgentStateTest, OldStateWithoutAnUndeliveredResultIsRemoved) {
  EXPECT_TRUE(Produce("committed")->SetCommitted({}).ok());
  EXPECT_TRUE(Open("failed")->SetFailed({client::Code::kFailed, "PLUGIN_FAILED", "", ""}).ok());
  Open("nothing");
  MakeAllOld();
  Open("new");
  EXPECT_FALSE(fs::exists(Folder("committed")));
  EXPECT_FALSE(fs::exists(Folder("failed")));
  EXPECT_FALSE(fs::exists(Folder("nothing")));
}

TEST_F(AgentStateTest, OldestOfTooManyStatesIsRemovedIfItIsUnusedAndWithoutAResult) {
  Produce("produced");
  const auto working = Open("working");
  EXPECT_TRUE(Open("failed")->SetFailed({client::Code::kFailed, "PLUGIN_FAILED", "", ""}).ok());
  EXPECT_TRUE(Produce("committed")->SetCommitted({}).ok());
  MakeAllOlderBy(std::chrono::hours(2));
  fs::last_write_time(Folder("failed"), fs::file_time_type::clock::now() - std::chrono::hours(3));
  for (size_t i = 3; i < client::kMaxStates; ++i) {
    fs::create_directory(Folder(std::to_string(i)));
  }
  Open("new");  // the 1,001st without a result
  EXPECT_FALSE(fs::exists(Folder("failed")));
  EXPECT_TRUE(fs::exists(Folder("committed")));
  Open("newer");
  Open("newest");
  EXPECT_FALSE(fs::exists(Folder("committed")));
  EXPECT_TRUE(fs::exists(Folder("working")));
  EXPECT_EQ(Open("produced")->phase(), AgentPhase::kProduced);
}

TEST_F(AgentStateTest, UnreadableStateMayHaveAnUndeliveredResult) {
  Produce("produced");
  EXPECT_EQ(UndeliveredBytes(base_, kRun, "nothing", "n1"), std::nullopt);
  EXPECT_GT(UndeliveredBytes(base_, kRun, "produced", "n1"), 5);
  fs::remove(Folder("produced") + "/state.json");
  EXPECT_EQ(UndeliveredBytes(base_, kRun, "produced", "n1"), std::nullopt);
  fs::create_directory(Folder("produced") + "/state.json");
  EXPECT_NE(UndeliveredBytes(base_, kRun, "produced", "n1"), std::nullopt);
}

TEST_F(AgentStateTest, UndeliveredResultsAreListedByTheNameOfTheirFolder) {
  Produce("produced");
  fs::copy(Folder("produced"), Folder("copied"), fs::copy_options::recursive);
  EXPECT_TRUE(Produce("committed")->SetCommitted({}).ok());
  const auto results = ListUndeliveredResults(base_, "n1");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].name, (ResultName{kRun, "produced"}));
}

TEST_F(AgentStateTest, StateIsRemovedUnlessItIsInUse) {
  auto used = Produce("produced");
  std::ofstream(Folder("produced") + ".json") << "{}";
  EXPECT_FALSE(RemoveState(base_, kRun, "produced", "n1"));
  EXPECT_TRUE(fs::exists(used->results_dir() + "/result"));
  used.reset();
  EXPECT_TRUE(RemoveState(base_, kRun, "produced", "n1"));
  EXPECT_TRUE(fs::is_empty(base_));
}

TEST_F(AgentStateTest, NumberOfTheAttemptRemainsAsLongAsTheState) {
  Produce("produced");
  EXPECT_TRUE(Produce("committed")->SetCommitted({}).ok());
  const auto attempt = [&](const std::string& plugin) {
    return client::AttemptState::Open(base_, kRun, plugin, "n1").value();
  };
  EXPECT_EQ(attempt("produced")->Next().value(), 1);
  EXPECT_EQ(attempt("committed")->Next().value(), 1);
  MakeAllOld();
  Open("new");
  attempt("new");
  EXPECT_EQ(attempt("produced")->Next().value(), 2);
  EXPECT_EQ(attempt("committed")->Next().value(), 1);
}

TEST_F(AgentStateTest, OldStateRemainsWhenItIsOpened) {
  EXPECT_TRUE(Produce("committed")->SetCommitted({}).ok());
  MakeAllOld();
  EXPECT_EQ(Open("committed")->phase(), AgentPhase::kCommitted);
}

}  // namespace
}  // namespace muster
