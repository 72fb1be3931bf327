// The operator's context: one file that holds all that a person's programs need to reach a fleet.
//
//   {
//     "fleet": "fleet-0a1b2c3d.muster",
//     "aggregator_targets": ["10.0.0.5:7443"],
//     "status_targets": ["10.0.0.5:7444"],
//     "gateway_urls": ["https://10.0.0.5:7442"],
//     "relay_targets": ["10.0.0.5:7445"],
//     "fleet_ca_pem": "-----BEGIN CERTIFICATE-----...",
//     "certificate_chain_pem": "-----BEGIN CERTIFICATE-----...",
//     "private_key_pem": "-----BEGIN PRIVATE KEY-----..."
//   }
//
// It is a secret: whoever has it is that operator.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_CONTEXT_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_CONTEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/secret.h"

namespace muster {

struct OperatorContext {
  std::string fleet;
  std::vector<std::string> aggregator_targets;  // "host:port"
  std::vector<std::string> status_targets;      // "host:port"
  std::vector<std::string> gateway_urls;        // "https://host:port"
  std::vector<std::string> relay_targets;       // "host:port"; older files lack it
  std::string fleet_ca_pem;                     // the fleet's root
  std::string certificate_chain_pem;            // leaf first
  Secret private_key_pem;                       // PKCS#8 or SEC1
};

// Reads and checks a context. Each fault has its own message, which names the file:
// NOT_FOUND (CONTEXT_NOT_FOUND); FAILED_PRECONDITION (SECRET_FILE_EXPOSED) if others can read it,
// it is somebody else's, a link or no plain file; INVALID_ARGUMENT (INVALID_CONTEXT) for what is no
// JSON, an unknown, missing or wrong field, a key that is not the certificate's, or a certificate
// of another fleet or of no operator. That the certificate has not expired is CheckContext's
// question.
absl::StatusOr<OperatorContext> ReadContext(const std::string& path);

// Whether the certificate is trusted and valid at `now`: UNAUTHENTICATED with the reason of
// VerifyChain.
absl::Status CheckContext(const OperatorContext& context, absl::Time now);

// Replaces `path` with the context (0600), durably and at once. Its folder must exist.
absl::Status WriteContext(const std::string& path, const OperatorContext& context);

// The same content as WriteContext writes, for whoever prints or sends it.
Secret ContextToJson(const OperatorContext& context);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CONTEXT_H_
