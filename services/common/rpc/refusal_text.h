// The text of a refusal that cannot carry details.
#ifndef MUSTER_SERVICES_COMMON_RPC_REFUSAL_TEXT_H_
#define MUSTER_SERVICES_COMMON_RPC_REFUSAL_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"

namespace muster {

// Returns "REASON: message. Next step", for an error before a handler was called: gRPC sends only
// its code and its text then.
inline std::string RefusalText(const absl::Status& status) {
  return absl::StrCat(ReasonOf(status), ": ", status.message(), ". ", NextStepOf(status));
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_REFUSAL_TEXT_H_
