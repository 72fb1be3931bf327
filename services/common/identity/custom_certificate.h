// Certificates that somebody brings for a listener of their own: not of the fleet, of any kind that
// TLS takes.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_CUSTOM_CERTIFICATE_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_CUSTOM_CERTIFICATE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/secret.h"

namespace muster {

// Of each text that is brought.
inline constexpr size_t kMaxCustomPem = size_t{64} << 10;

// What a listener serves with.
struct CustomServerCertificate {
  std::string chain_pem;  // the server's certificate, then its issuers
  Secret key_pem;         // one PKCS#8 block
};

// Reads a server's certificate with its issuers in order, and its key (PKCS#8 or SEC1, unencrypted;
// RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519). INVALID_ARGUMENT, reason
// INVALID_STATUS_CERTIFICATE, if one cannot be read or is too long, if they do not belong together,
// if the certificate is not valid at `now`, or is not for servers. Nothing of the key is ever in
// the error.
absl::StatusOr<CustomServerCertificate> ReadCustomServerCertificate(
    std::string_view certificate_pem, std::string_view key_pem, absl::Time now);

// Whether a client that dials `host`, a DNS name or an IP address, accepts this server for it.
bool ServesHost(const CustomServerCertificate& server, const std::string& host);

// Reads 1 to 16 certificates of authorities that vouch for clients; returns them alone. The same
// error if one is not an authority's or not valid at `now`.
absl::StatusOr<std::string> ReadCustomClientCas(std::string_view pem, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CUSTOM_CERTIFICATE_H_
