// Export of a certificate with its key for browsers and keychains.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_PKCS12_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_PKCS12_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"
#include "services/common/identity/secret.h"

namespace muster {

// Returns a PKCS#12 file (DER) with the key and the chain, leaf first, encrypted with `password`.
// Browsers show `label` in their list. Uses AES-256 and SHA-256, which current browsers and
// keychains support.
absl::StatusOr<Secret> MakePkcs12(const PrivateKey& key, std::span<const Certificate> chain,
                                  std::string_view label, std::string_view password);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_PKCS12_H_
