#include "services/relay/proxy/spool_drain_step.h"

#include <string>

#include "absl/random/random.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"

namespace muster {
namespace {

constexpr absl::Duration kRetry = absl::Seconds(1);

void Finish(Spool& spool, const SpoolDelivery& delivery, const absl::Status& status) {
  const v1::ResultKey& key = delivery.header.description().key();
  const bool committed = status.ok() && !delivery.expired;
  Log(committed ? LogLevel::kInfo : LogLevel::kWarning,
      committed     ? "a result of the spool is committed"
      : status.ok() ? "a result of the spool has expired"
                    : "a result of the spool was refused upstream",
      {{"run", key.run()},
       {"plugin", key.plugin()},
       {"node", key.node()},
       {"why", status.ok() ? delivery.why : status.ToString()}});
  spool.Finish(delivery, committed          ? "committed"
                         : delivery.lost    ? "lost"
                         : delivery.expired ? "expired"
                                            : "refused");
}

}  // namespace

bool IsFinalRefusal(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
      // Without a reason it comes from a service that may not know this relay yet.
      return !reason.empty() && reason != "NOT_ATTACHED" && reason != "ROLE_NOT_ALLOWED";
    case absl::StatusCode::kNotFound:
      return reason == "RUN_NOT_FOUND";
    case absl::StatusCode::kUnauthenticated:
      return reason == "INVALID_SIGNATURE";
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kInvalidArgument:
      return !reason.empty();
    default:
      return false;
  }
}

DrainStep DeliverNext(Spool& spool, SpoolDrainPeer& peer, const std::stop_token& stop) {
  const auto delivery = spool.Dequeue();
  if (!delivery) return DrainStep::kNothingDue;
  const absl::Status status =
      delivery->expired ? peer.ReportExpired(*delivery, stop) : peer.Deliver(*delivery, stop);
  if (status.ok() || IsFinalRefusal(status)) {
    Finish(spool, *delivery, status);
    return DrainStep::kFinished;
  }
  absl::BitGen random;
  const absl::Duration jitter = absl::Milliseconds(absl::Uniform(random, 200, 3000));
  spool.Requeue(*delivery, RetryAfterOf(status).value_or(kRetry) + jitter);
  const v1::ResultKey& key = delivery->header.description().key();
  Log(LogLevel::kInfo, "a result of the spool is tried again",
      {{"run", key.run()}, {"plugin", key.plugin()}, {"node", key.node()}, {"error", status}});
  return absl::IsUnavailable(status) ? DrainStep::kPeerUnavailable : DrainStep::kRequeued;
}

}  // namespace muster
