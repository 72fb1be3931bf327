#include "cli/output/damage_view.h"

#include <map>
#include <utility>

#include "cli/output/table.h"
#include "services/common/identity/identity.h"

namespace muster::cli {

std::string DamageTable(const std::vector<v1::DamagedResult>& damaged, bool with_run, int width) {
  std::vector<Table::Column> columns = {{"PLUGIN"}, {"NODE"}, {"DAMAGE"}};
  if (with_run) columns.insert(columns.begin(), {"RUN"});
  Table table(std::move(columns));
  for (const v1::DamagedResult& result : damaged) {
    const bool archive = result.key().plugin().empty();
    std::vector<std::string> row = {archive ? "(archive)" : result.key().plugin(),
                                    archive ? "-" : result.key().node(), result.damage()};
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
                    {"damage", result.damage()}});
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

}  // namespace muster::cli
