// Errors of the sender that include another error.
#ifndef MUSTER_SERVICES_CLIENT_ERRORS_H_
#define MUSTER_SERVICES_CLIENT_ERRORS_H_

#include "absl/status/status.h"

namespace muster::client {

// SOURCE_UNREADABLE (ABORTED): the source of a result failed with `cause`.
absl::Status SourceUnreadableError(const absl::Status& cause);

// NOT_COMMITTED_IN_TIME (DEADLINE_EXCEEDED): the last attempt ended with `last`, which is OK if
// there was none.
absl::Status DeadlineError(const absl::Status& last);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_ERRORS_H_
