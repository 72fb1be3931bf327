// How a node gets the secrets of a job from the jobs service, through relays that can neither read
// nor forge them (secrets.proto specifies the signed texts and the encryption).
#ifndef MUSTER_SERVICES_COMMON_JOBS_SECRETS_EXCHANGE_H_
#define MUSTER_SERVICES_COMMON_JOBS_SECRETS_EXCHANGE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/secrets.pb.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/hpke.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/jobs/signing_files.h"

namespace muster {

// The most bytes of all values of a job.
inline constexpr size_t kMaxSecretsOfJob = size_t{256} << 10;

// Wipes the values.
void Wipe(v1::SecretValues* values);

// A request, with the key that opens its answer. The node keeps the key in memory alone.
struct SecretsRequest {
  HpkeKey key;
  v1::FetchSecretsRequest message;
};

// Makes a request with a new key, signed by the node's key.
absl::StatusOr<SecretsRequest> MakeSecretsRequest(const SigningFiles& node_files,
                                                  std::string_view fleet, std::string_view job,
                                                  std::string_view node);

// Verifies that the node of the request signed it, with a certificate of the fleet that is valid
// now. Returns the content of that certificate: the caller checks that it is not revoked.
// PERMISSION_DENIED (SECRETS_REFUSED), with the cause.
absl::StatusOr<std::shared_ptr<const VerifiedChain>> VerifySecretsRequest(
    const v1::FetchSecretsRequest& request, std::string_view fleet, VerifiedChains& chains);

// Seals the values for a verified request, and signs the answer as the jobs service.
// PERMISSION_DENIED (SECRETS_REFUSED) if the key of the request cannot be used.
absl::StatusOr<v1::FetchSecretsResponse> SealSecrets(const SigningFiles& service_files,
                                                     std::string_view fleet,
                                                     const v1::FetchSecretsRequest& request,
                                                     const v1::SecretValues& values);

// Verifies that a jobs service of the fleet signed the answer to this request, and opens it. The
// caller wipes the values. UNAVAILABLE (SECRET_UNAVAILABLE), with the cause.
absl::StatusOr<v1::SecretValues> OpenSecrets(const SecretsRequest& request, std::string_view fleet,
                                             std::span<const Certificate> roots, absl::Time now,
                                             const v1::FetchSecretsResponse& response);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_JOBS_SECRETS_EXCHANGE_H_
