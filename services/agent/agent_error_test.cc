// Error results of the agent as a program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "services/agent/testing/agent_fixture.h"
#include "services/client/client.h"
#include "services/common/errors/runs.h"

namespace muster {
namespace {

namespace fs = std::filesystem;
using client::Code;
using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST_F(AgentTest, FailedPluginIsAnErrorResultAndALaterSuccessReplacesIt) {
  config_["definition"] = Definition("echo the cause >&2; exit 7");
  EXPECT_EQ(Run(), Code::kErrorDelivered);
  EXPECT_TRUE(peer_.committed()->description.is_error());
  EXPECT_THAT(peer_.committed()->body,
              ::testing::AllOf(HasSubstr("exit code 7"), HasSubstr("the cause")));
  config_["definition"] = Definition("echo ok > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done");
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_EQ(peer_.committed()->generation, 2);
}

TEST_F(AgentTest, OtherErrorConflictsAndALaterSuccessReplacesTheCommittedOne) {
  config_["definition"] = Definition("exit 7");
  EXPECT_EQ(Run(), Code::kErrorDelivered);
  config_["definition"] = Definition("exit 8");
  EXPECT_EQ(Run(), Code::kConflict) << said_;
  EXPECT_THAT(peer_.committed()->body, HasSubstr("exit code 7"));
  config_["definition"] = Definition("echo ok > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done");
  EXPECT_EQ(Run(), Code::kOk) << said_;
}

// Each error names the size, so that the second one conflicts.
TEST_F(AgentTest, FaultyResultIsProducedAgainAfterAnotherErrorWasCommitted) {
  const auto write = [](int bytes) {
    return Definition("head -c " + std::to_string(bytes) +
                      " /dev/zero > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done");
  };
  config_["max_result_bytes"] = 10;
  config_["definition"] = write(100);
  EXPECT_EQ(Run(), Code::kErrorDelivered) << said_;
  config_["definition"] = write(120);
  EXPECT_EQ(Run(), Code::kConflict) << said_;
  EXPECT_THAT(said_, HasSubstr("RESULT_TOO_LARGE"));
  config_["definition"] = write(5);
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_EQ(peer_.committed()->body.size(), 5U);
}

TEST_F(AgentTest, PluginThatHangsWritesNothingOrIsMissingIsAnErrorResult) {
  config_["time_limit"] = "300ms";
  config_["definition"] = Definition("echo waiting; sleep 1000");
  EXPECT_EQ(Run(), Code::kErrorDelivered);
  EXPECT_THAT(peer_.committed()->body,
              ::testing::AllOf(HasSubstr("PLUGIN_TIMED_OUT"), HasSubstr("waiting")));
  config_.erase("time_limit");
  peer_.Forget();
  config_["definition"] = Definition("true");
  EXPECT_EQ(Run(), Code::kErrorDelivered);
  EXPECT_THAT(peer_.committed()->body, HasSubstr("NO_RESULT"));
  peer_.Forget();
  config_["definition"] = Json({{"sonobuoy-config", {{"driver", "Job"}, {"plugin-name", "facts"}}},
                                {"spec", {{"command", {"/no/such/program"}}}}})
                              .dump();
  EXPECT_EQ(Run(), Code::kErrorDelivered);
  EXPECT_THAT(peer_.committed()->body, HasSubstr("TOOL_NOT_FOUND"));
}

// The file is not one that the plugin may read.
TEST_F(AgentTest, ResultThatWasReplacedByALinkIsProducedAgain) {
  std::ofstream(base_ + "/secret") << "secret";
  config_["definition"] = Definition("echo ok > $RESULTS_DIR/r; echo r > $RESULTS_DIR/done");
  peer_.judge = [] { return errors::PairNotPlanned("r", "facts", "n1"); };
  EXPECT_EQ(Run(), Code::kRefused) << said_;
  fs::path result;
  for (const auto& entry : fs::recursive_directory_iterator(base_ + "/state")) {
    if (entry.path().filename() == "r") result = entry.path();
  }
  ASSERT_TRUE(fs::remove(result));
  fs::create_symlink(base_ + "/secret", result);
  peer_.judge = [] { return absl::OkStatus(); };
  EXPECT_EQ(Run(), Code::kFailed) << said_;
  EXPECT_THAT(said_, HasSubstr("not a regular file"));
  EXPECT_FALSE(peer_.committed());
  EXPECT_EQ(Run(), Code::kOk) << said_;
  EXPECT_EQ(peer_.committed()->body, "ok\n");
}

TEST_F(AgentTest, ErrorOfAFailedPluginIsDeliveredByTheNextStart) {
  const std::string counter = base_ + "/runs";
  config_["definition"] = Definition("echo x >> " + counter + "; echo the cause >&2; exit 7");
  peer_.judge = [] { return errors::PairNotPlanned("r", "facts", "n1"); };
  EXPECT_EQ(Run(), Code::kRefused) << said_;
  peer_.judge = [] { return absl::OkStatus(); };
  EXPECT_EQ(Run(), Code::kErrorDelivered) << said_;
  EXPECT_THAT(peer_.committed()->body,
              ::testing::AllOf(HasSubstr("exit code 7"), HasSubstr("the cause")));
  EXPECT_EQ(fs::file_size(counter), 2U) << "the plugin ran again";
  EXPECT_EQ(Run(), Code::kErrorDelivered) << said_;
  EXPECT_EQ(fs::file_size(counter), 4U) << "after the delivery it runs again";
}

}  // namespace
}  // namespace muster
