#include "services/common/rpc/answer_memory.h"

#include "services/common/errors/rpc.h"
#include "services/common/errors/runs.h"

namespace muster {

AnswerMemory::AnswerMemory(Metrics& metrics, AnswerMemoryLimits limits)
    : limits_{limits.in_all, limits.of_caller},
      quota_(metrics.AddGauge("muster_rpc_unread_answer_bytes",
                              "Bytes of answers that their peers have not taken yet.")) {}

absl::StatusOr<AnswerMemory::Ticket> AnswerMemory::Reserve(std::string_view caller, int64_t bytes) {
  Ticket ticket;
  switch (quota_.Reserve(caller, bytes, limits_, &ticket)) {
    case CallerQuota::Verdict::kReserved:
      return ticket;
    case CallerQuota::Verdict::kFull:
      return errors::Overloaded();
    case CallerQuota::Verdict::kCallerAtLimit:
      return errors::TooManyAnswerBytes(limits_.of_caller);
  }
  return absl::InternalError("unknown verdict");
}

}  // namespace muster
