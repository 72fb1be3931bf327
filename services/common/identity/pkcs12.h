// The form in which browsers and keychains take a certificate with its key.
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

// A PKCS#12 file (DER) with the key and the chain, leaf first, locked with `password`. `label` is
// what a browser shows in its list. AES-256 and SHA-256, which current browsers and keychains read.
absl::StatusOr<Secret> MakePkcs12(const PrivateKey& key, std::span<const Certificate> chain,
                                  std::string_view label, std::string_view password);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_PKCS12_H_
