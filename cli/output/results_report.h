// What a plugin's tree of results says, in the forms that Sonobuoy's users know.
#ifndef MUSTER_CLI_OUTPUT_RESULTS_REPORT_H_
#define MUSTER_CLI_OUTPUT_RESULTS_REPORT_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "cli/output/json_view.h"
#include "services/common/archive/result_item.h"

namespace muster::cli {

// Name, status, numbers by status, and the names of what failed; `node` empty: of all.
std::string ReportText(const std::string& plugin, const std::string& node, const ResultItem& tree);
Json ReportJson(const std::string& plugin, const std::string& node, const ResultItem& tree);

// One line of JSON for each leaf: plugin, node, name, status, meta, details.
void WriteDetails(std::ostream& out, const std::string& plugin, const ResultItem& tree);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_RESULTS_REPORT_H_
