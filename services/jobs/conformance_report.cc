#include "services/jobs/conformance_report.h"

#include <cstddef>
#include <utility>

#include "nlohmann/json.hpp"
#include "services/common/base/utf8.h"

namespace muster {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr size_t kMaxProbes = 1'000;
constexpr size_t kMaxDifferences = 100;
constexpr size_t kMaxText = 1'024;
constexpr std::string_view kPass = "pass";
constexpr std::string_view kSkip = "skip";
constexpr std::string_view kFail = "fail";

// Returns whether a field has this value. Copies nothing: the values may be nested deeply.
template <typename Value>
bool Holds(const Json& object, const char* name, const Value& value) {
  const auto found = object.find(name);
  return found != object.end() && *found == value;
}

std::string TextOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

v1::ProbeDifference DifferenceOf(const std::string& id, std::string_view in_baseline,
                                 const ConformanceProbe* probe) {
  v1::ProbeDifference difference;
  difference.set_probe(id);
  difference.set_baseline_status(std::string(in_baseline));
  if (probe == nullptr) return difference;
  difference.set_status(probe->status);
  difference.set_measured(probe->measured);
  difference.set_text(probe->text);
  return difference;
}

}  // namespace

bool IsConformanceType(std::string_view type) {
  return type.starts_with(kConformanceType) &&
         type.substr(kConformanceType.size()).starts_with('@');
}

std::optional<ConformanceReport> ReadConformanceReport(std::string_view json) {
  const Json document = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !Holds(document, "version", kVersion)) return std::nullopt;
  const auto probes = document.find("probes");
  if (probes == document.end() || !probes->is_array() || probes->size() > kMaxProbes) {
    return std::nullopt;
  }
  ConformanceReport report;
  report.status = CutUtf8(TextOf(document, "status"), kMaxText);
  for (const Json& entry : *probes) {
    std::string id = entry.is_object() ? TextOf(entry, "id") : "";
    if (id.empty() || id.size() > kMaxText) return std::nullopt;
    ConformanceProbe& probe = report.probes[std::move(id)];
    probe.required = Holds(entry, "required", true);
    probe.status = CutUtf8(TextOf(entry, "status"), kMaxText);
    probe.measured = CutUtf8(TextOf(entry, "measured"), kMaxText);
    probe.text = CutUtf8(TextOf(entry, "text"), kMaxText);
  }
  return report;
}

std::vector<v1::ProbeDifference> CompareReports(const ConformanceReport& baseline,
                                                const ConformanceReport& report) {
  std::map<std::string, v1::ProbeDifference> differences;
  for (const auto& [id, expected] : baseline.probes) {
    if (expected.status != kPass) continue;
    const auto found = report.probes.find(id);
    const ConformanceProbe* const probe = found == report.probes.end() ? nullptr : &found->second;
    if (probe == nullptr || (probe->status != kPass && probe->status != kSkip)) {
      differences.emplace(id, DifferenceOf(id, expected.status, probe));
    }
  }
  for (const auto& [id, probe] : report.probes) {
    if (probe.required && probe.status == kFail && !baseline.probes.contains(id)) {
      differences.emplace(id, DifferenceOf(id, "", &probe));
    }
  }
  std::vector<v1::ProbeDifference> sorted;
  for (auto& [id, difference] : differences) {
    if (sorted.size() == kMaxDifferences) break;
    sorted.push_back(std::move(difference));
  }
  return sorted;
}

}  // namespace muster
