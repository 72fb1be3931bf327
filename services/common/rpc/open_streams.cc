#include "services/common/rpc/open_streams.h"

#include "services/common/errors/rpc.h"

namespace muster {
namespace {

constexpr size_t kMaxMethods = 64;

}  // namespace

OpenStreams::OpenStreams(Metrics& metrics)
    : gauge_(metrics.AddGauges("muster_rpc_open_streams",
                               "Open streams that have received their first message.", {"method"},
                               kMaxMethods)) {}

StreamLimits LimitsOf(const Identity& caller, StreamLimits limits) {
  switch (RoleOf(caller)) {
    case Role::kAggregator:
    case Role::kStatus:
    case Role::kGateway:
    case Role::kJobs:
      limits.of_caller = 0;
      break;
    case Role::kRunPlugin:
    case Role::kRunListener:
      limits.of_caller = limits.in_all / 2;
      break;
    default:
      break;
  }
  return limits;
}

absl::StatusOr<OpenStreams::Ticket> OpenStreams::Enter(std::string_view method,
                                                       std::string_view caller,
                                                       const StreamLimits& limits) {
  CallerQuota* quota = nullptr;
  {
    MutexLock lock(mutex_);
    auto found = quotas_.find(method);
    if (found == quotas_.end()) {
      const std::string name(method);
      found = quotas_.try_emplace(name, gauge_.With({name})).first;
    }
    quota = &found->second;
  }
  Ticket ticket;
  switch (quota->Reserve(caller, 1, limits, &ticket)) {
    case CallerQuota::Verdict::kReserved:
      return ticket;
    case CallerQuota::Verdict::kFull:
      return errors::TooManyStreams(method, limits.in_all);
    case CallerQuota::Verdict::kCallerAtLimit:
      return errors::TooManyStreamsOfCaller(method, limits.of_caller);
  }
  return absl::InternalError("unknown verdict");
}

int64_t OpenStreams::Count(std::string_view method) const {
  MutexLock lock(mutex_);
  const auto found = quotas_.find(method);
  return found == quotas_.end() ? 0 : found->second.reserved();
}

}  // namespace muster
