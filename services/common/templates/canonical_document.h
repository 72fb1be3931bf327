// The stored form of a document.
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_CANONICAL_DOCUMENT_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_CANONICAL_DOCUMENT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace muster {

// Returns a document in YAML or JSON as JSON with sorted names. INVALID_ARGUMENT
// (INVALID_DOCUMENT), also if it is larger than kMaxDocument.
absl::StatusOr<std::string> CanonicalDocument(std::string_view text);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_CANONICAL_DOCUMENT_H_
