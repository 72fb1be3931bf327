// The operator's context: one file with everything that an operator's programs need to connect to a
// fleet.
//
//   {
//     "fleet": "fleet-0a1b2c3d.muster",
//     "aggregator_targets": ["10.0.0.5:7443"],
//     "status_targets": ["10.0.0.5:7444"],
//     "gateway_urls": ["https://10.0.0.5:7442"],
//     "relay_targets": ["10.0.0.5:7445"],
//     "jobs_targets": ["10.0.0.5:7446"],
//     "fleet_ca_pem": "-----BEGIN CERTIFICATE-----...",
//     "certificate_chain_pem": "-----BEGIN CERTIFICATE-----...",
//     "private_key_pem": "-----BEGIN PRIVATE KEY-----..."
//   }
//
// The file is a secret: its holder acts as that operator.
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
  std::vector<std::string> relay_targets;       // "host:port"; older files lack it, as the next
  std::vector<std::string> jobs_targets;        // "host:port"
  std::string fleet_ca_pem;                     // the fleet's root
  std::string certificate_chain_pem;            // leaf first
  Secret private_key_pem;                       // PKCS#8 or SEC1
};

// Reads and checks a context. Every message names the file and the fault. Fails with NOT_FOUND
// (CONTEXT_NOT_FOUND). Fails with FAILED_PRECONDITION (SECRET_FILE_EXPOSED) if others can read the
// file, or if it belongs to another user or is not a regular file. Fails with INVALID_ARGUMENT
// (INVALID_CONTEXT) if it is not JSON, or if a field is unknown, missing or wrong. Also fails so if
// the key does not belong to the certificate, or if the certificate is of another fleet or not of
// an operator. Does not check the validity of the certificate: see CheckContext.
absl::StatusOr<OperatorContext> ReadContext(const std::string& path);

// Checks that the certificate is trusted and valid at `now`. Fails with UNAUTHENTICATED and the
// reason of VerifyChain.
absl::Status CheckContext(const OperatorContext& context, absl::Time now);

// Replaces `path` with the context (0600), durably and atomically. Its folder must exist.
absl::Status WriteContext(const std::string& path, const OperatorContext& context);

// Returns the content that WriteContext writes.
Secret ContextToJson(const OperatorContext& context);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CONTEXT_H_
