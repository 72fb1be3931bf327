// Certificate signing requests (PKCS#10): how a service gets a certificate for a key that never
// leaves it.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_REQUEST_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_REQUEST_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/identity/key.h"

namespace muster {

// A request in PEM, signed with `key`. It carries no names: the issuer decides them from what it
// knows of the asker.
absl::StatusOr<std::string> CreateSigningRequest(const PrivateKey& key);

// The key of a request whose signature proves that the asker holds it. Whatever names it carries
// are ignored. INVALID_ARGUMENT, reason INVALID_CSR: no request or over 16 KiB, not signed by its
// own key, or a key that is neither P-256 nor P-384.
absl::StatusOr<PublicKey> VerifySigningRequest(std::string_view pem);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_REQUEST_H_
