// Versions of documents, and references to them.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_VERSION_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_VERSION_H_

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// Returns whether text is a version of Semantic Versioning 2.0.0, without build metadata: two such
// versions would be equal. At most 64 characters. Source: https://semver.org/spec/v2.0.0.html
bool IsVersion(std::string_view text);

// Returns a key that sorts as the precedence of versions does, as bytes. `version`: see IsVersion.
std::string VersionSortKey(std::string_view version);

// A reference such as "ansible@1.2.0", "ansible@1.2", "ansible@1" or "ansible".
struct VersionReference {
  std::string name;
  std::string version;  // whole, or empty
  // Otherwise the newest release whose sort key begins with this is meant.
  std::string key_prefix;
};

// Returns nothing for a text that is no reference.
std::optional<VersionReference> ParseVersionReference(std::string_view text);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_VERSION_H_
