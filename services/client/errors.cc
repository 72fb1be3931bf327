#include "services/client/errors.h"

#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/errors/client.h"

namespace muster::client {

absl::Status SourceUnreadableError(const absl::Status& cause) {
  return errors::SourceUnreadable(ToStd(cause.message()), NextStepOf(cause));
}

absl::Status DeadlineError(const absl::Status& last) {
  return errors::NotCommittedInTime(last.ok() ? "no attempt was made" : ToStd(last.message()),
                                    NextStepOf(last));
}

}  // namespace muster::client
