// Certificate signing requests (PKCS#10), with which a program gets a certificate for a key that
// never leaves it.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_REQUEST_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_REQUEST_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/identity/key.h"

namespace muster {

// Returns a request in PEM, signed with `key`. It contains no names: the issuer chooses them.
absl::StatusOr<std::string> CreateSigningRequest(const PrivateKey& key);

// Returns the key of a request whose signature proves that the requester holds the private key.
// Ignores all names in the request. Fails with INVALID_ARGUMENT (INVALID_CSR) if the text is not a
// request or longer than 16 KiB, if the request is not signed with its own key, or if the key is
// neither P-256 nor P-384.
absl::StatusOr<PublicKey> VerifySigningRequest(std::string_view pem);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_SIGNING_REQUEST_H_
