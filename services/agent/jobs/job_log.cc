#include "services/agent/jobs/job_log.h"

#include "services/common/base/backoff.h"
#include "services/common/base/log.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr absl::Duration kStartRetry = absl::Seconds(1);
constexpr BackoffOptions kDiskRetry = {absl::Seconds(1), absl::Seconds(10)};

}  // namespace

bool JobLog::Append(const v1::JobRecord& record) {
  if (!Repeat([&] { return options_.outbox.Append(record); })) return false;
  options_.on_records();
  return true;
}

bool JobLog::Sync() {
  return Repeat([&] { return options_.outbox.Sync(); });
}

bool JobLog::Repeat(absl::FunctionRef<absl::Status()> write) {
  Backoff backoff(kDiskRetry);
  absl::Status failure;
  for (;;) {
    const absl::Status status = write();
    if (status.ok()) return true;
    if (status != failure) {
      Log(LogLevel::kError, "a record of a job cannot be stored; trying again",
          {{"job", options_.job}, {"error", status}});
    }
    failure = status;
    // An invalid record stays invalid.
    if (options_.stops() || absl::IsInvalidArgument(status)) return false;
    options_.wait(backoff.Next(std::nullopt));
  }
}

void JobLog::SetStart(absl::Time time) {
  ToProto(time, start_.emplace().mutable_started()->mutable_time());
}

absl::Duration JobLog::StoreStart(absl::Duration now) {
  if (!start_) return absl::InfiniteDuration();
  if (now < store_start_at_) return store_start_at_;
  const absl::Status status = options_.outbox.Append(*start_);
  if (status.ok()) {
    start_.reset();
    options_.on_records();
    return absl::InfiniteDuration();
  }
  if (store_start_at_ == absl::ZeroDuration()) {
    Log(LogLevel::kError, "the start of a job cannot be stored; trying again",
        {{"job", options_.job}, {"error", status}});
  }
  return store_start_at_ = now + kStartRetry;
}

void JobLog::FinishStart() {
  if (start_) Append(*start_);
  start_.reset();
}

}  // namespace muster
