// The signature of a node over its result, which prevents relays from changing it.
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

// The signed fields. `sha256` is 32 raw bytes.
struct SignedResult {
  std::string run;
  std::string plugin;
  std::string node;
  int64_t attempt = 0;
  int64_t size = 0;
  std::string sha256;
  bool is_error = false;
  std::string media_type;
  std::string file_name;
};

// Returns the signed text; message Signature of the API specifies it.
std::string ResultSignatureText(const SignedResult& result);

// Signs that text with ECDSA and SHA-256; returns ASN.1 DER.
absl::StatusOr<std::string> SignResult(const PrivateKey& key, const SignedResult& result);

// Verifies that the first certificate of `chain_pem` signed the result, that it chains to `root`,
// and that its URI may sign for the pair: the pair's own credential, one for any node of its
// plugin, or the enrolled node. Fails with UNAUTHENTICATED or PERMISSION_DENIED and the cause.
absl::Status VerifyResultSignature(std::string_view signature, std::string_view chain_pem,
                                   const SignedResult& result, std::string_view fleet,
                                   const Certificate& root, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_RESULT_SIGNATURE_H_
