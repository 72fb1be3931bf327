// Keeps the certificate of a service current by asking the aggregator.
#ifndef MUSTER_SERVICES_COMMON_SERVICE_CERTIFICATE_RENEWAL_H_
#define MUSTER_SERVICES_COMMON_SERVICE_CERTIFICATE_RENEWAL_H_

#include <grpcpp/channel.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "services/common/identity/certificate_files.h"

namespace muster {

// Publishes files that were replaced on the disk. At half of the certificate's validity, requests
// the next one from the aggregator. Blocks for up to 20 s. Called about every minute; a failure
// leaves the last good certificate in use.
absl::Status RenewIfDue(CertificateFiles& files, const std::shared_ptr<grpc::Channel>& aggregator,
                        absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_SERVICE_CERTIFICATE_RENEWAL_H_
