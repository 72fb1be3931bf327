#include "cli/commands/fleet_list.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/commands/share_view.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "cli/output/json_view.h"
#include "cli/output/table.h"
#include "services/common/base/error.h"
#include "services/common/base/status_macros.h"

namespace muster::cli {
namespace {

// The answer of each relay, by name.
using RelayAnswers = std::vector<std::pair<std::string, absl::StatusOr<FleetShares::RelayShares>>>;

absl::StatusOr<RelayAnswers> ListRelays(FleetShares& fleet, const std::string& relay) {
  RelayAnswers answers;
  if (!relay.empty()) {
    auto listed = fleet.List(relay);
    if (!listed.ok()) return listed.status();
    answers.emplace_back(relay, std::move(listed));
    return answers;
  }
  auto root = fleet.List("");
  if (!root.ok()) return root.status();
  const std::string name = root->usage.relay();
  answers.emplace_back(name, std::move(root));
  ASSIGN_OR_RETURN(const auto relays, fleet.ListRelays());
  for (const std::string& other : relays) answers.emplace_back(other, fleet.List(other));
  return answers;
}

std::string ErrorText(const absl::Status& status) {
  return absl::StrCat(ReasonOf(status), ": ", status.message());
}

Json ToJson(const RelayAnswers& answers) {
  Json json = Json::array();
  for (const auto& [relay, listed] : answers) {
    Json entry;
    entry["relay"] = relay;
    if (!listed.ok()) {
      entry["fault"] = ErrorText(listed.status());
      json.push_back(std::move(entry));
      continue;
    }
    entry["files"] = listed->usage.files();
    entry["max_files"] = listed->usage.max_files();
    entry["bytes"] = listed->usage.bytes();
    entry["quota"] = listed->usage.quota();
    entry["shares"] = Json::array();
    for (const v1::Share& share : listed->shares) entry["shares"].push_back(cli::ToJson(share));
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

absl::StatusOr<int> ListFleetShares(Console& console, const CommandLine& line, FleetShares& fleet,
                                    const std::string& relay) {
  ASSIGN_OR_RETURN(const auto answers, ListRelays(fleet, relay));
  if (line.json) {
    console.out << Dump(ToJson(answers));
    return kExitOk;
  }
  Table files({{"RELAY"},
               {"FROM"},
               {"TO"},
               {"ID"},
               {"SIZE", Table::Align::kRight},
               {"SHARED"},
               {"EXPIRES"},
               {"STATE"}});
  Table usage_table({{"RELAY"}, {"FILES"}, {"BYTES"}});
  for (const auto& [name, listed] : answers) {
    if (!listed.ok()) {
      usage_table.AddRow({name, "?", ErrorText(listed.status())});
      continue;
    }
    const v1::ShareUsage& usage = listed->usage;
    usage_table.AddRow({name, absl::StrCat(usage.files(), " of ", usage.max_files()),
                        absl::StrCat(HumanSize(usage.bytes()), " of ", HumanSize(usage.quota()))});
    for (const v1::Share& share : listed->shares) {
      const v1::SharedFile& file = share.file();
      files.AddRow({name, file.key().source(), file.key().target(), file.key().id(),
                    HumanSize(file.size()), SharedAt(file), Expiry(file),
                    StateWord(share.state())});
    }
  }
  if (!files.empty()) console.out << files.Render(console.width) << "\n";
  console.out << usage_table.Render(console.width);
  return kExitOk;
}

}  // namespace muster::cli
