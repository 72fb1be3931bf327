// Parses YAML of unknown origin to a JSON tree, within limits.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_YAML_TREE_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_YAML_TREE_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

// Returns the time of the processor that this thread has used.
absl::Duration ThreadCpu();

struct YamlLimits {
  size_t depth = 64;
  size_t nodes = 4'000'000;
  absl::Duration cpu = absl::InfiniteDuration();  // of this thread
};

// Parses the first document of `text`. Plain scalars get the type of YAML's core schema (null,
// bool, int, float); all others are text. Fails with INVALID_ARGUMENT and the line for text that is
// not YAML or exceeds a limit, for a key that is not a scalar, and for aliases (a few aliases can
// expand to gigabytes).
absl::StatusOr<nlohmann::ordered_json> ParseYamlTree(std::string_view text,
                                                     const YamlLimits& limits = {});

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_YAML_TREE_H_
