#include "cli/output/damage_view.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

v1::DamagedResult Damaged(const std::string& plugin, const std::string& node,
                          const std::string& damage) {
  v1::DamagedResult result;
  result.mutable_key()->set_run("3f2a");
  result.mutable_key()->set_plugin(plugin);
  result.mutable_key()->set_node(node);
  result.set_damage(damage);
  return result;
}

TEST(DamageViewTest, TableNamesPluginNodeAndArchive) {
  std::vector<v1::DamagedResult> damaged = {Damaged("logs", "n1", "the CRC32C differs"),
                                            Damaged("", "", "the SHA-256 differs")};
  damaged[0].set_redelivery("requested");
  EXPECT_EQ(DamageTable(damaged, /*with_run=*/false, 0),
            "PLUGIN     NODE  DAMAGE               REDELIVERY\n"
            "logs       n1    the CRC32C differs   requested\n"
            "(archive)  -     the SHA-256 differs  -\n");
  EXPECT_EQ(DamageTable({damaged[0]}, /*with_run=*/true, 0),
            "RUN   PLUGIN  NODE  DAMAGE              REDELIVERY\n"
            "3f2a  logs    n1    the CRC32C differs  requested\n");
  EXPECT_EQ(RedeliveryText(damaged),
            "1 result is requested from the nodes again. Later, verify again to see whether the "
            "nodes had them.");
  damaged[0].set_redelivery("declined: RESULT_NOT_KEPT: the node keeps no copy");
  EXPECT_EQ(RedeliveryText(damaged), "");
}

TEST(DamageViewTest, StatusMarksTheDamagedPairs) {
  Json status = {{"plugins",
                  {{{"name", "logs"}, {"node", "n1"}},
                   {{"name", "logs"}, {"node", "n2"}},
                   {{"name", "once"}, {"node", ""}}}}};
  AddDamage({Damaged("logs", "n2", "missing"), Damaged("once", "global", "differs")}, status);
  EXPECT_FALSE(status["plugins"][0].contains("damage"));
  EXPECT_EQ(status["plugins"][1]["damage"], "missing");
  EXPECT_EQ(status["plugins"][2]["damage"], "differs");
  EXPECT_EQ(status["damaged"][0]["node"], "n2");
  EXPECT_EQ(status["damaged"][0]["archive"], false);
}

TEST(DamageViewTest, StatusOfASoundRunIsUnchanged) {
  Json status = {{"plugins", Json::array()}};
  AddDamage({}, status);
  EXPECT_EQ(status.dump(), R"({"plugins":[]})");
}

TEST(DamageViewTest, VerificationThatReportedNothingHasNoCounts) {
  Verification verification;
  EXPECT_EQ(VerificationText(verification), "Nothing was verified.");
  EXPECT_EQ(VerificationJson(verification)["complete"], false);
}

TEST(DamageViewTest, VerificationThatDidNotEndIsNotComplete) {
  Verification verification;
  verification.last.set_results(2);
  verification.last.set_bytes(5);
  EXPECT_EQ(VerificationText(verification),
            "Not all is verified: 2 stored results and archives, 5 B: no damage was found.");
  EXPECT_EQ(VerificationJson(verification)["complete"], false);
  verification.last.set_complete(true);
  EXPECT_EQ(VerificationText(verification),
            "Verified 2 stored results and archives, 5 B: no damage was found.");
  EXPECT_EQ(VerificationJson(verification)["complete"], true);
}

}  // namespace
}  // namespace muster::cli
