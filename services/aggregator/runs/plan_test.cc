#include "services/aggregator/runs/plan.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

std::string Definition(const std::string& name, const std::string& driver) {
  return "sonobuoy-config:\n  driver: " + driver + "\n  plugin-name: " + name +
         "\nspec:\n  name: plugin\n  image: example/image:1\n";
}

TEST(PlanTest, PluginsArePlannedForGlobalOrEachNode) {
  const auto plan = MakePlan({"hostfacts", Definition("e2e", "Job")}, {"n1", "n2"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->plugins.size(), 2u);
  EXPECT_EQ(plan->plugins[0].name, "e2e");
  EXPECT_TRUE(plan->plugins[0].has_image);
  EXPECT_FALSE(plan->plugins[1].has_image);
  ASSERT_EQ(plan->pairs.size(), 3u);
  EXPECT_EQ(plan->pairs[0].node, "global");
  EXPECT_EQ(plan->pairs[2].node, "n2");
}

TEST(PlanTest, InvalidPlanIsRefusedWithTheReason) {
  const auto reason = [](const std::vector<std::string>& plugins,
                         const std::vector<std::string>& nodes) {
    return ReasonOf(MakePlan(plugins, nodes).status());
  };
  EXPECT_EQ(reason({}, {"n1"}), "EMPTY_PLAN");
  EXPECT_EQ(reason({"hostfacts"}, {}), "EMPTY_PLAN");
  EXPECT_EQ(reason({"nosuch"}, {"n1"}), "INVALID_PLUGIN");
  EXPECT_EQ(reason({"hostfacts", "hostfacts"}, {"n1"}), "INVALID_PLUGIN");
  EXPECT_EQ(reason({"hostfacts"}, {"../n1"}), "INVALID_NAME");
  EXPECT_EQ(reason({"hostfacts"}, {".n1"}), "INVALID_NAME");
  EXPECT_EQ(reason({"hostfacts"}, {"-n"}), "INVALID_NAME");
  EXPECT_EQ(reason({"hostfacts"}, {"global"}), "INVALID_NAME");
  EXPECT_EQ(reason({"hostfacts"}, {"n1", "n1"}), "INVALID_NAME");
  EXPECT_EQ(reason({"hostfacts"}, {std::string(254, 'n')}), "INVALID_NAME");
  EXPECT_EQ(reason({"hostfacts"}, std::vector<std::string>(100'001, "n")), "PLAN_TOO_LARGE");
  EXPECT_EQ(reason({"sonobuoy-config:\n  driver: Cron\n  plugin-name: x\n"}, {"n1"}),
            "INVALID_PLUGIN");
}

}  // namespace
}  // namespace muster
