// What remains of an agent's state.
#include "services/agent/agent_state.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
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
  void MakeAllOld() const {
    for (const auto& entry : fs::directory_iterator(base_)) {
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::days(41));
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

TEST_F(AgentStateTest, UndeliveredResultAndErrorRemain) {
  Produce("produced");
  EXPECT_TRUE(Open("failed")->SetFailed({client::Code::kFailed, "PLUGIN_FAILED", "", ""}).ok());
  MakeAllOld();
  Open("new");
  EXPECT_EQ(Open("produced")->phase(), AgentPhase::kProduced);
  EXPECT_EQ(Open("failed")->phase(), AgentPhase::kFailed);
}

TEST_F(AgentStateTest, OldStateOfDeliveredResultsIsRemoved) {
  EXPECT_TRUE(Produce("committed")->SetCommitted().ok());
  Open("nothing");
  MakeAllOld();
  Open("new");
  EXPECT_FALSE(fs::exists(Folder("committed")));
  EXPECT_FALSE(fs::exists(Folder("nothing")));
}

TEST_F(AgentStateTest, OldStateRemainsWhenItIsOpened) {
  EXPECT_TRUE(Produce("committed")->SetCommitted().ok());
  MakeAllOld();
  EXPECT_EQ(Open("committed")->phase(), AgentPhase::kCommitted);
}

}  // namespace
}  // namespace muster
