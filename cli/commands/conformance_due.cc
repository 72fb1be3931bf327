#include "cli/commands/conformance_due.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <string_view>

#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

using Adapter = v1::NodeInfo::Adapter;

// Returns null for a node that cannot run containers now.
const Adapter* DockerOf(const v1::ListAttachedResponse::Child& child) {
  if (child.is_relay() || !child.attached()) return nullptr;
  const auto& adapters = child.info().adapters();
  const auto docker = std::ranges::find(adapters, "docker", &Adapter::name);
  return docker == adapters.end() || !docker->problem().empty() ? nullptr : &*docker;
}

}  // namespace

std::vector<std::string> DueNodes(const AttachedMap& attached,
                                  const std::vector<v1::NodeConformance>& reports,
                                  absl::Duration age, absl::Time now) {
  std::map<std::string_view, absl::Time> reported;
  for (const v1::NodeConformance& report : reports) {
    reported[report.node()] = FromProto(report.report_time());
  }
  std::vector<std::string> due;
  for (const auto& [name, child] : attached) {
    const Adapter* const docker = DockerOf(child);
    if (docker == nullptr) continue;
    const auto found = reported.find(name);
    const absl::Time changed = FromProto(docker->version_time());
    const bool fresh = found != reported.end() && now - found->second < age &&
                       (found->second >= changed || changed > now);
    if (!fresh) due.push_back(name);
  }
  return due;
}

}  // namespace muster::cli
