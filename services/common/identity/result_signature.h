// A node's word for what it delivers, so that nobody on the way can exchange it.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_RESULT_SIGNATURE_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_RESULT_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster {

// What is signed. `sha256` is 32 raw bytes.
struct SignedResult {
  std::string run;
  std::string plugin;
  std::string node;
  int64_t attempt = 0;
  int64_t size = 0;
  std::string sha256;
};

// The text under the signature; message Signature of the API states it.
std::string ResultSignatureText(const SignedResult& result);

// ECDSA with SHA-256 over that text, ASN.1 DER.
absl::StatusOr<std::string> SignResult(const PrivateKey& key, const SignedResult& result);

// Whether `signature` was made by the first certificate of `chain_pem`, that certificate leads to
// `root`, and its URI may speak for the pair: the pair's own credential, one for any node of its
// plugin, or the enrolled node. UNAUTHENTICATED or PERMISSION_DENIED with the cause.
absl::Status VerifyResultSignature(std::string_view signature, std::string_view chain_pem,
                                   const SignedResult& result, std::string_view fleet,
                                   const Certificate& root, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_RESULT_SIGNATURE_H_
