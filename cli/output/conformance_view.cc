#include "cli/output/conformance_view.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/output/format.h"
#include "cli/output/table.h"
#include "services/common/base/strings.h"
#include "services/common/rpc/proto_time.h"

namespace muster::cli {
namespace {

// A probe of a report, with the order in which people look at it.
struct Probe {
  std::string id, area, status, measured, expected, text;
  std::pair<size_t, size_t> rank;
};

constexpr size_t kNameColumn = 12;
constexpr std::array<std::string_view, 4> kByUrgency = {"fail", "warn", "pass", "skip"};

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json ReportOf(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : Json(nullptr);
}

// Sorted by status, then as the report has them.
std::vector<Probe> ProbesOf(const std::string& report) {
  std::vector<Probe> probes;
  const Json json = ReportOf(report);
  if (!json.is_object() || !json.contains("probes") || !json["probes"].is_array()) return probes;
  for (const Json& entry : json["probes"]) {
    if (!entry.is_object()) continue;
    Probe probe = {TextOf(entry, "id"),
                   TextOf(entry, "area"),
                   TextOf(entry, "status"),
                   TextOf(entry, "measured"),
                   TextOf(entry, "expected"),
                   TextOf(entry, "text"),
                   {}};
    const auto urgency = std::ranges::find(kByUrgency, probe.status) - kByUrgency.begin();
    probe.rank = {static_cast<size_t>(urgency), probes.size()};
    probes.push_back(std::move(probe));
  }
  std::ranges::sort(probes, {}, &Probe::rank);
  return probes;
}

std::string Finding(const std::string& measured, const std::string& text) {
  return text.empty() ? measured : absl::StrCat(measured, measured.empty() ? "" : ": ", text);
}

std::string DifferenceText(const v1::ProbeDifference& difference) {
  if (difference.status().empty()) {
    return absl::StrCat(difference.probe(), ": the report does not have it");
  }
  return absl::StrCat(difference.probe(), ": ", difference.status(), ", ",
                      Finding(difference.measured(), difference.text()));
}

// XML has no way to write other control characters.
std::string Xml(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') kept += c;
  }
  return absl::StrReplaceAll(kept,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace

std::string StateWord(v1::ConformanceState state) {
  switch (state) {
    case v1::CONFORMANCE_STATE_NO_BASELINE:
      return "no-baseline";
    case v1::CONFORMANCE_STATE_CONFORMANT:
      return "conformant";
    case v1::CONFORMANCE_STATE_DIFFERENT:
      return "different";
    case v1::CONFORMANCE_STATE_OUTDATED:
      return "outdated";
    default:
      return "unknown";
  }
}

Json ToJson(const v1::NodeConformance& node) {
  Json differences = Json::array();
  for (const v1::ProbeDifference& difference : node.differences()) {
    differences.push_back({{"probe", difference.probe()},
                           {"baseline_status", difference.baseline_status()},
                           {"status", difference.status()},
                           {"measured", difference.measured()},
                           {"text", difference.text()}});
  }
  Json json = {{"node", node.node()},
               {"state", StateWord(node.state())},
               {"status", node.status()},
               {"deployment", node.deployment()},
               {"type", node.type()},
               {"report_time", Rfc3339(FromProto(node.report_time()))},
               {"differences", std::move(differences)}};
  if (!node.report().empty()) json["report"] = ReportOf(node.report());
  return json;
}

Json ToJson(const v1::ConformanceBaseline& baseline) {
  return {{"node", baseline.node()},
          {"deployment", baseline.deployment()},
          {"type", baseline.type()},
          {"max_age_seconds", absl::ToInt64Seconds(FromProto(baseline.max_age()))},
          {"set_by", baseline.set_by()},
          {"set_time", Rfc3339(FromProto(baseline.set_time()))},
          {"report", ReportOf(baseline.report())}};
}

std::string ConformanceTable(const std::vector<v1::NodeConformance>& nodes, absl::Time now,
                             int width) {
  Table table({{"NODE"}, {"STATE"}, {"PROBES"}, {"REPORTED"}, {"TYPE"}, {"DIFFERENCES"}});
  for (const v1::NodeConformance& node : nodes) {
    std::string differences;
    if (node.differences_size() > 0) differences = DifferenceText(node.differences(0));
    if (node.differences_size() > 1) {
      absl::StrAppend(&differences, " (and ", node.differences_size() - 1, " more)");
    }
    table.AddRow({node.node(), StateWord(node.state()), node.status(),
                  HumanTime(FromProto(node.report_time()), now), node.type(), differences});
  }
  return table.Render(width);
}

std::string NodeConformanceTable(const v1::NodeConformance& node, absl::Time now, int width) {
  std::string text;
  const auto line = [&text](std::string_view name, std::string_view value) {
    const size_t gap = kNameColumn > name.size() ? kNameColumn - name.size() : 1;
    absl::StrAppend(&text, ToAbsl(name), std::string(gap, ' '), ToAbsl(value), "\n");
  };
  line("NODE", Printable(node.node()));
  line("state", StateWord(node.state()));
  line("probes", Printable(node.status()));
  line("reported", HumanTime(FromProto(node.report_time()), now));
  line("type", Printable(node.type()));
  line("deployment", Printable(node.deployment()));
  for (const v1::ProbeDifference& difference : node.differences()) {
    line("difference", Printable(DifferenceText(difference)));
  }
  Table table({{"STATUS"}, {"PROBE"}, {"EXPECTED"}, {"MEASURED"}});
  for (const Probe& probe : ProbesOf(node.report())) {
    table.AddRow({probe.status, probe.id, probe.expected, Finding(probe.measured, probe.text)});
  }
  return absl::StrCat(text, "\n", table.Render(width));
}

std::string JUnitOf(const v1::NodeConformance& node) {
  const std::vector<Probe> probes = ProbesOf(node.report());
  const auto count = [&probes](std::string_view status) {
    return std::ranges::count(probes, status, &Probe::status);
  };
  std::string xml =
      absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"conformance of ",
                   Xml(node.node()), "\" tests=\"", probes.size(), "\" failures=\"",
                   count("fail") + count("warn"), "\" skipped=\"", count("skip"), "\" timestamp=\"",
                   Rfc3339(FromProto(node.report_time())), "\">\n");
  for (const Probe& probe : probes) {
    absl::StrAppend(&xml, "  <testcase classname=\"", Xml(probe.area), "\" name=\"", Xml(probe.id),
                    "\">");
    const std::string what = Xml(Finding(probe.measured, probe.text));
    if (probe.status == "fail" || probe.status == "warn") {
      absl::StrAppend(&xml, "<failure type=\"", probe.status, "\" message=\"expected ",
                      Xml(probe.expected), "\">", what, "</failure>");
    } else if (probe.status == "skip") {
      absl::StrAppend(&xml, "<skipped message=\"", what, "\"/>");
    } else {
      absl::StrAppend(&xml, "<system-out>", what, "</system-out>");
    }
    absl::StrAppend(&xml, "</testcase>\n");
  }
  return absl::StrCat(xml, "</testsuite>\n");
}

}  // namespace muster::cli
