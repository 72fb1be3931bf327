// Progress in the format of Sonobuoy's plugins.
#ifndef MUSTER_SERVICES_AGENT_PROGRESS_JSON_H_
#define MUSTER_SERVICES_AGENT_PROGRESS_JSON_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "services/client/client.h"

namespace muster {

// Parses one JSON object: ignores unknown fields, sets missing ones to zero, and replaces bytes
// that are not UTF-8. Fails with INVALID_ARGUMENT (INVALID_PROGRESS) for other content, and for
// counts that are not whole numbers of 64 bits. The status service checks the values.
absl::StatusOr<client::Progress> ParseProgressJson(std::string_view text);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PROGRESS_JSON_H_
