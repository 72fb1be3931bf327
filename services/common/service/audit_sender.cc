#include "services/common/service/audit_sender.h"

#include "services/common/base/error.h"

namespace muster {

// An error before the handler of the call has no reason: the certificate of the sender was revoked,
// for example.
bool IsFinalAuditAnswer(const absl::Status& answer) {
  if (absl::IsInvalidArgument(answer)) return true;
  const std::string reason = ReasonOf(answer);
  return absl::IsPermissionDenied(answer) && !reason.empty() && reason != "NOT_YOURS";
}

}  // namespace muster
