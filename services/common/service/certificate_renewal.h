// Keeps the certificate of a service current.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_CERTIFICATE_RENEWAL_H_
#define MUSTER_SERVICES_COMMON_SERVICE_CERTIFICATE_RENEWAL_H_

#include <grpcpp/channel.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/base/executor.h"
#include "services/common/base/scheduled_task.h"
#include "services/common/base/timers.h"
#include "services/common/identity/certificate_files.h"

namespace muster {

// Renews a certificate every 30 s if that is due. A failure is logged; the last good certificate
// stays in use. Thread-safe.
class CertificateRenewal {
 public:
  // Calls `renew` on `executor`. `timers` and `executor` outlive this object.
  CertificateRenewal(std::function<absl::Status()> renew, TimerService& timers, Executor& executor);

  // Renews for the first time after `delay`.
  void Start(absl::Duration delay) { task_.RunAfter(delay); }

  // Waits for a renewal in progress. Idempotent.
  void Stop() { task_.Stop(); }

 private:
  void Run();

  const std::function<absl::Status()> renew_;
  ScheduledTask task_;
};

// Publishes files that were replaced on the disk. At half of the certificate's validity, requests
// the next one from the aggregator. Blocks for up to 20 s.
absl::Status RenewIfDue(CertificateFiles& files, const std::shared_ptr<grpc::Channel>& aggregator,
                        absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_CERTIFICATE_RENEWAL_H_
