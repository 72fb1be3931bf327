// Progress as Sonobuoy's plugins post it.
#ifndef MUSTER_SERVICES_AGENT_PROGRESS_JSON_H_
#define MUSTER_SERVICES_AGENT_PROGRESS_JSON_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "services/client/client.h"

namespace muster {

// One JSON object; fields that are not known are ignored, missing ones are zero, bytes that are not
// UTF-8 are replaced. INVALID_ARGUMENT (INVALID_PROGRESS) for anything else, and for counts that
// are no whole numbers of 64 bits. The status service checks the
// numbers.
absl::StatusOr<client::Progress> ParseProgressJson(std::string_view text);

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PROGRESS_JSON_H_
