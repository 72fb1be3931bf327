#include "cli/output/results_report.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/output/format.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

constexpr size_t kFailedShown = 1000;

bool IsStandard(std::string_view status) {
  static constexpr std::array kStandard = {kPassed, kFailed, kTimeout, kSkipped};
  return std::ranges::find(kStandard, status) != kStandard.end();
}

int64_t CountFailed(const ResultSummary& summary) {
  return summary.count(kFailed) + summary.count(kTimeout);
}

// Names from Sonobuoy begin with a space where "[It]" was removed. The name of an error is its
// text, which may have several lines.
ResultSummary Summary(const ResultItem& tree) {
  ResultSummary summary = Summarize(tree, kFailedShown);
  for (FailedLeaf& leaf : summary.failed) {
    leaf.name = JoinLines(leaf.name);
    absl::StripAsciiWhitespace(&leaf.name);
  }
  return summary;
}

void WriteLeaves(std::ostream& out, const std::string& plugin, std::string_view node,
                 const ResultItem& item) {
  const auto type = item.meta.find(kMetaType);
  if (type != item.meta.end() && type->second == kTypeNode) node = item.name;
  if (!item.items.empty()) {
    for (const ResultItem& inner : item.items) WriteLeaves(out, plugin, node, inner);
    return;
  }
  Json json = {{"plugin", plugin},
               {"node", std::string(node)},
               {"name", JoinLines(item.name)},
               {"status", item.status}};
  json["meta"] = item.meta;
  if (!item.details.is_null()) json["details"] = item.details;
  out << Dump(json);
}

}  // namespace

std::string ReportText(const std::string& plugin, const std::string& node, const ResultItem& tree) {
  const ResultSummary summary = Summary(tree);
  std::string text = absl::StrCat("Plugin: ", Printable(plugin), "\n");
  if (!node.empty()) absl::StrAppend(&text, "Node: ", Printable(node), "\n");
  absl::StrAppend(&text, "Status: ", Printable(summary.status), "\nTotal: ", summary.total(),
                  "\nPassed: ", summary.count(kPassed), "\nFailed: ", CountFailed(summary),
                  "\nSkipped: ", summary.count(kSkipped), "\n");
  for (const auto& [status, count] : summary.counts) {
    if (!IsStandard(status)) absl::StrAppend(&text, Printable(status), ": ", count, "\n");
  }
  if (summary.failed.empty()) return text;
  absl::StrAppend(&text, "\nFailed:\n");
  for (const FailedLeaf& leaf : summary.failed) {
    const bool names_node = node.empty() && !leaf.node.empty();
    absl::StrAppend(&text, "  ", names_node ? Printable(leaf.node) + ": " : "",
                    Printable(leaf.name), "\n");
  }
  if (summary.failed_not_listed > 0) {
    absl::StrAppend(&text, "  ... and ", summary.failed_not_listed, " more\n");
  }
  return text;
}

Json ReportJson(const std::string& plugin, const std::string& node, const ResultItem& tree) {
  const ResultSummary summary = Summary(tree);
  Json json = {{"plugin", plugin}};
  if (!node.empty()) json["node"] = node;
  json["status"] = summary.status;
  json["total"] = summary.total();
  json["passed"] = summary.count(kPassed);
  json["failed"] = CountFailed(summary);
  json["skipped"] = summary.count(kSkipped);
  json["counts"] = summary.counts;
  json["failures"] = Json::array();
  for (const FailedLeaf& leaf : summary.failed) {
    json["failures"].push_back(
        {{"node", leaf.node.empty() ? node : leaf.node}, {"name", leaf.name}});
  }
  json["failed_not_listed"] = summary.failed_not_listed;
  return json;
}

void WriteDetails(std::ostream& out, const std::string& plugin, const ResultItem& tree) {
  WriteLeaves(out, plugin, "", tree);
}

}  // namespace muster::cli
