// sonobuoy_results.yaml: writing a tree of results, and reading one back.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_YAML_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_YAML_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/archive/result_item.h"
#include "services/common/base/io.h"

namespace muster {

// Writes `root` as YAML into `sink`, piece by piece; the same tree gives the same bytes. Text that
// is no UTF-8 has its bad bytes replaced.
absl::Status WriteResultsYaml(const ResultItem& root, ByteSink& sink);

// The number of bytes that WriteResultsYaml will write.
absl::StatusOr<int64_t> ResultsYamlSize(const ResultItem& root);

// Reads a tree, ours or Sonobuoy's (also the YAML of a manual result). Unknown keys are ignored;
// INVALID_ARGUMENT, with the line or the item's name, for text that is no YAML, an item that is no
// map, or items nested more than 30 deep.
absl::StatusOr<ResultItem> ParseResultsYaml(std::string_view text);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_YAML_H_
