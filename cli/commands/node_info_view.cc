#include "cli/commands/node_info_view.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {

Json ToJson(const v1::NodeInfo& info) {
  Json adapters = Json::array();
  for (const v1::NodeInfo::Adapter& adapter : info.adapters()) {
    adapters.push_back(
        {{"name", adapter.name()},
         {"version", adapter.version()},
         {"problem", adapter.problem()},
         {"version_time",
          adapter.has_version_time() ? Rfc3339(FromProto(adapter.version_time())) : ""}});
  }
  return {{"version", info.version()},
          {"adapters", adapters},
          {"free_bytes", info.free_bytes()},
          {"total_bytes", info.total_bytes()},
          {"time", Rfc3339(FromProto(info.time()))}};
}

void AddInfo(const v1::NodeInfo& info, absl::Time now, Table* table) {
  table->AddRow({"program", Printable(info.version())});
  for (const v1::NodeInfo::Adapter& adapter : info.adapters()) {
    std::string text = Printable(adapter.name());
    if (!adapter.version().empty()) absl::StrAppend(&text, " ", Printable(adapter.version()));
    if (adapter.has_version_time()) {
      absl::StrAppend(&text, " since ", HumanTime(FromProto(adapter.version_time()), now));
    }
    if (!adapter.problem().empty()) absl::StrAppend(&text, ": ", Printable(adapter.problem()));
    table->AddRow({"adapter", text});
  }
  table->AddRow(
      {"disk", absl::StrCat(HumanSize(info.free_bytes()), " of ", HumanSize(info.total_bytes()),
                            " free, measured ", HumanTime(FromProto(info.time()), now))});
}

}  // namespace muster::cli
