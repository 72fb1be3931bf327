// Writes and reads sonobuoy_results.yaml.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_YAML_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_YAML_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/archive/result_item.h"
#include "services/common/archive/yaml_tree.h"
#include "services/common/base/io.h"

namespace muster {

// Writes `root` as YAML into `sink`, in pieces; equal trees give equal bytes. Bytes that are not
// UTF-8 are replaced.
absl::Status WriteResultsYaml(const ResultItem& root, ByteSink& sink);

// Returns the number of bytes that WriteResultsYaml writes.
absl::StatusOr<int64_t> ResultsYamlSize(const ResultItem& root);

// Parses a tree of Muster or Sonobuoy, or the YAML of a manual result. Ignores unknown keys. Fails
// with INVALID_ARGUMENT, with the line or the item's name, for text that is not YAML, an item that
// is not a map, or more than 30 levels of items.
absl::StatusOr<ResultItem> ParseResultsYaml(std::string_view text, const YamlLimits& limits = {});

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_RESULTS_YAML_H_
