// The report of the template type "conformance" (docs/templates.md, "Conformance of nodes").
#ifndef MUSTER_SERVICES_JOBS_CONFORMANCE_REPORT_H_
#define MUSTER_SERVICES_JOBS_CONFORMANCE_REPORT_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/conformance.pb.h"

namespace muster {

// The name of the type. Its output `report` is kept for each node.
inline constexpr std::string_view kConformanceType = "conformance";
inline constexpr std::string_view kReportOutput = "report";

// Returns whether a reference, NAME@VERSION, names a version of it.
bool IsConformanceType(std::string_view type);

struct ConformanceProbe {
  bool required = false;
  std::string status;  // "pass", "warn", "fail" or "skip"
  std::string measured;
  std::string text;
};

struct ConformanceReport {
  std::string status;                              // "pass", "warn" or "fail"
  std::map<std::string, ConformanceProbe> probes;  // by id
};

// Reads a report; nothing if it is none: a type of this name may be another one.
std::optional<ConformanceReport> ReadConformanceReport(std::string_view json);

// Returns the probes that fail or are missing although the baseline passes them, and the required
// ones that fail and that the baseline does not have; by id, at most 100. Skipped probes do not
// apply to the node. A baseline with a failed probe admits nodes on which it fails too.
std::vector<v1::ProbeDifference> CompareReports(const ConformanceReport& baseline,
                                                const ConformanceReport& report);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_CONFORMANCE_REPORT_H_
