// The conformance of nodes, for people and for programs.
#ifndef MUSTER_CLI_OUTPUT_CONFORMANCE_VIEW_H_
#define MUSTER_CLI_OUTPUT_CONFORMANCE_VIEW_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/output/json_view.h"
#include "muster/v1/conformance.pb.h"

namespace muster::cli {

// Returns "no-baseline", "conformant", "different" or "outdated".
std::string StateWord(v1::ConformanceState state);

// Return JSON with the field names of the protos; the report as JSON.
Json ToJson(const v1::NodeConformance& node);
Json ToJson(const v1::ConformanceBaseline& baseline);

// Returns a row for each node.
std::string ConformanceTable(const std::vector<v1::NodeConformance>& nodes, absl::Time now,
                             int width);

// Returns one node: what differs from the baseline, and its probes, the failed ones first.
std::string NodeConformanceTable(const v1::NodeConformance& node, absl::Time now, int width);

// Returns the report as a JUnit document, with a test case for each probe.
std::string JUnitOf(const v1::NodeConformance& node);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_CONFORMANCE_VIEW_H_
