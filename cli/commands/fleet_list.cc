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

using Asked = std::vector<std::pair<std::string, absl::StatusOr<FleetShares::AtRelay>>>;

absl::StatusOr<Asked> Ask(FleetShares& fleet, const std::string& relay) {
  Asked asked;
  if (!relay.empty()) {
    auto at = fleet.List(relay);
    if (!at.ok()) return at.status();
    asked.emplace_back(relay, std::move(at));
    return asked;
  }
  auto centre = fleet.List("");
  if (!centre.ok()) return centre.status();
  const std::string name = centre->usage.relay();
  asked.emplace_back(name, std::move(centre));
  ASSIGN_OR_RETURN(const auto relays, fleet.Relays());
  for (const std::string& other : relays) asked.emplace_back(other, fleet.List(other));
  return asked;
}

std::string Fault(const absl::Status& status) {
  return absl::StrCat(ReasonOf(status), ": ", status.message());
}

Json ToJson(const Asked& asked) {
  Json json = Json::array();
  for (const auto& [relay, at] : asked) {
    Json one;
    one["relay"] = relay;
    if (!at.ok()) {
      one["fault"] = Fault(at.status());
      json.push_back(std::move(one));
      continue;
    }
    one["files"] = at->usage.files();
    one["max_files"] = at->usage.max_files();
    one["bytes"] = at->usage.bytes();
    one["quota"] = at->usage.quota();
    one["shares"] = Json::array();
    for (const v1::Share& share : at->shares) one["shares"].push_back(cli::ToJson(share));
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace

absl::StatusOr<int> ListFleetShares(Console& console, const CommandLine& line, FleetShares& fleet,
                                    const std::string& relay) {
  ASSIGN_OR_RETURN(const auto asked, Ask(fleet, relay));
  if (line.json) {
    console.out << Dump(ToJson(asked));
    return kExitOk;
  }
  Table files({{"RELAY"},
               {"FROM"},
               {"FOR"},
               {"ID"},
               {"SIZE", Table::Align::kRight},
               {"SHARED"},
               {"EXPIRES"},
               {"STATE"}});
  Table room({{"RELAY"}, {"FILES"}, {"BYTES"}});
  for (const auto& [name, at] : asked) {
    if (!at.ok()) {
      room.AddRow({name, "?", Fault(at.status())});
      continue;
    }
    const v1::ShareUsage& usage = at->usage;
    room.AddRow({name, absl::StrCat(usage.files(), " of ", usage.max_files()),
                 absl::StrCat(HumanSize(usage.bytes()), " of ", HumanSize(usage.quota()))});
    for (const v1::Share& share : at->shares) {
      const v1::SharedFile& file = share.file();
      files.AddRow({name, file.key().source(), file.key().target(), file.key().id(),
                    HumanSize(file.size()), SharedAt(file), Expiry(file),
                    StateWord(share.state())});
    }
  }
  if (!files.empty()) console.out << files.Render(console.width) << "\n";
  console.out << room.Render(console.width);
  return kExitOk;
}

}  // namespace muster::cli
