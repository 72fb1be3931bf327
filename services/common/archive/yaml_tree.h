// YAML of unknown origin as a JSON tree, within limits.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_YAML_TREE_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_YAML_TREE_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

struct YamlLimits {
  size_t depth = 64;
  size_t nodes = 4'000'000;
};

// The first document of `text`. Plain scalars get the type that YAML's core schema gives them
// (null, bool, int, float), all others are text. INVALID_ARGUMENT with the line for text that is no
// YAML, breaks a limit, has a key that is no scalar, or uses an alias (a few of those can stand for
// gigabytes).
absl::StatusOr<nlohmann::ordered_json> ParseYamlTree(std::string_view text,
                                                     const YamlLimits& limits = {});

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_YAML_TREE_H_
