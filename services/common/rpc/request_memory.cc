#include "services/common/rpc/request_memory.h"

#include "services/common/errors/rpc.h"
#include "services/common/errors/runs.h"

namespace muster {

absl::StatusOr<RequestMemory::Ticket> RequestMemory::Reserve(std::string_view caller,
                                                             int64_t bytes) {
  Ticket ticket;
  switch (quota_.Reserve(caller, bytes, limits_, &ticket)) {
    case CallerQuota::Verdict::kReserved:
      return ticket;
    case CallerQuota::Verdict::kFull:
      return errors::Overloaded();
    case CallerQuota::Verdict::kCallerAtLimit:
      return errors::TooManyRequestBytes(limits_.of_caller);
  }
  return absl::InternalError("unknown verdict");
}

}  // namespace muster
