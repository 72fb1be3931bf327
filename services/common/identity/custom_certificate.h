// Certificates that an operator provides for a listener: from any CA, of any kind that TLS accepts.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_CUSTOM_CERTIFICATE_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_CUSTOM_CERTIFICATE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/secret.h"

namespace muster {

// The limit of each provided text.
inline constexpr size_t kMaxCustomPem = size_t{64} << 10;

// The certificate and key of a listener.
struct CustomServerCertificate {
  std::string chain_pem;  // the server's certificate, then its issuers
  Secret key_pem;         // one PKCS#8 block
};

// Reads a server certificate with its issuers in order, and its key (PKCS#8 or SEC1, unencrypted;
// RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519). Fails with INVALID_ARGUMENT
// (INVALID_STATUS_CERTIFICATE) if one cannot be read or is too long, if they do not belong
// together, or if the certificate is not valid at `now` or not for servers. No error contains bytes
// of the key.
absl::StatusOr<CustomServerCertificate> ReadCustomServerCertificate(
    std::string_view certificate_pem, std::string_view key_pem, absl::Time now);

// Returns true if a client that dials `host`, a DNS name or an IP address, accepts this
// certificate.
bool ServesHost(const CustomServerCertificate& server, const std::string& host);

// Reads 1 to 16 certificates of client CAs and returns only these. Fails in the same way if one is
// not a CA certificate or not valid at `now`.
absl::StatusOr<std::string> ReadCustomClientCas(std::string_view pem, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CUSTOM_CERTIFICATE_H_
