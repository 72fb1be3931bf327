// A plugin's tree of results, in the formats of Sonobuoy.
#ifndef MUSTER_CLI_OUTPUT_RESULTS_REPORT_H_
#define MUSTER_CLI_OUTPUT_RESULTS_REPORT_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "cli/output/json_view.h"
#include "services/common/archive/result_item.h"

namespace muster::cli {

// Returns the name, status, counts by status, and the names of failed items, of `node` or of all
// nodes if it is empty.
std::string ReportText(const std::string& plugin, const std::string& node, const ResultItem& tree);
Json ReportJson(const std::string& plugin, const std::string& node, const ResultItem& tree);

// Writes a line of JSON for each leaf: plugin, node, name, status, meta, details.
void WriteDetails(std::ostream& out, const std::string& plugin, const ResultItem& tree);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_RESULTS_REPORT_H_
