#include "cli/output/damage_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "cli/output/table.h"
#include "services/common/identity/identity.h"

namespace muster::cli {

std::string DamageTable(const std::vector<v1::DamagedResult>& damaged, bool with_run, int width) {
  std::vector<Table::Column> columns = {{"PLUGIN"}, {"NODE"}, {"DAMAGE"}, {"REDELIVERY"}};
  if (with_run) columns.insert(columns.begin(), {"RUN"});
  Table table(std::move(columns));
  for (const v1::DamagedResult& result : damaged) {
    const bool archive = result.key().plugin().empty();
    std::vector<std::string> row = {archive ? "(archive)" : result.key().plugin(),
                                    archive ? "-" : result.key().node(), result.damage(),
                                    result.redelivery().empty() ? "-" : result.redelivery()};
    if (with_run) row.insert(row.begin(), result.key().run());
    table.AddRow(std::move(row));
  }
  return table.Render(width);
}

Json DamageJson(const std::vector<v1::DamagedResult>& damaged) {
  Json list = Json::array();
  for (const v1::DamagedResult& result : damaged) {
    list.push_back({{"run", result.key().run()},
                    {"plugin", result.key().plugin()},
                    {"node", result.key().node()},
                    {"generation", result.generation()},
                    {"archive", result.key().plugin().empty()},
                    {"damage", result.damage()},
                    {"redelivery", result.redelivery()}});
  }
  return list;
}

void AddDamage(const std::vector<v1::DamagedResult>& damaged, Json& status) {
  if (damaged.empty()) return;
  status["damaged"] = DamageJson(damaged);
  std::map<std::pair<std::string, std::string>, std::string> of;
  for (const v1::DamagedResult& result : damaged) {
    const std::string& node = result.key().node();
    of[{result.key().plugin(), node == kGlobalNode ? "" : node}] = result.damage();
  }
  for (Json& pair : status["plugins"]) {
    const auto found = of.find({pair.value("name", ""), pair.value("node", "")});
    if (found != of.end()) pair["damage"] = found->second;
  }
}

bool IsSound(const Verification& verification) {
  return verification.damaged.empty() && verification.last.database_damage().empty();
}

std::string VerifiedText(const v1::VerifyStoreResponse& report) {
  return absl::StrCat(
      report.results(),
      report.results() == 1 ? " stored result or archive, " : " stored results and archives, ",
      HumanSize(report.bytes()));
}

std::string RedeliveryText(const std::vector<v1::DamagedResult>& damaged) {
  const auto requested = std::ranges::count_if(
      damaged, [](const v1::DamagedResult& result) { return result.redelivery() == "requested"; });
  if (requested == 0) return "";
  return absl::StrCat(requested, requested == 1 ? " result is" : " results are",
                      " requested from the nodes again. Later, verify again to see whether the "
                      "nodes had them.");
}

std::string VerificationText(const Verification& verification) {
  const v1::VerifyStoreResponse& last = verification.last;
  const bool sound = IsSound(verification);
  if (!last.complete() && last.results() == 0 && sound) return "Nothing was verified.";
  return absl::StrCat(
      last.complete() ? "Verified " : "Not all is verified: ", VerifiedText(last), ": ",
      sound ? "no damage was found."
            : absl::StrCat(verification.damaged.size(), " damaged. Check the disk."));
}

Json VerificationJson(const Verification& verification) {
  return {{"complete", verification.last.complete()},
          {"results", verification.last.results()},
          {"bytes", verification.last.bytes()},
          {"removed_files", verification.last.removed_files()},
          {"database_damage", verification.last.database_damage()},
          {"damaged", DamageJson(verification.damaged)}};
}

}  // namespace muster::cli
