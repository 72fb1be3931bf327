#include "cli/supervisor/service_state.h"

#include <gtest/gtest.h>

namespace muster::supervisor {
namespace {

nlohmann::json Report(const char* state, int restarts) {
  return {{"name", "relay"}, {"state", state}, {"restarts", restarts}};
}

nlohmann::json All(const nlohmann::json& relay) {
  return nlohmann::json::array({{{"name", "status"}, {"state", "running"}}, relay});
}

TEST(ServiceStateTest, ServiceThatRunsOrWasRestartedHasRunSince) {
  const nlohmann::json before = Report("waiting", 3);
  EXPECT_FALSE(RanSince(before, All(before)));
  EXPECT_TRUE(RanSince(before, All(Report("running", 3))));
  EXPECT_TRUE(RanSince(before, All(Report("waiting", 4))));
}

TEST(ServiceStateTest, ServiceMayHaveRunWhileTheSupervisorDoesNotAnswer) {
  EXPECT_TRUE(RanSince(Report("waiting", 3), nlohmann::json::array()));
}

}  // namespace
}  // namespace muster::supervisor
