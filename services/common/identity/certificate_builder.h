// Builds and signs certificates, only for the CAs of this folder.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_BUILDER_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_BUILDER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster {

struct CertificateSpec {
  // A label for humans, cut to 64 bytes. It must differ from the issuer's: OpenSSL considers a
  // certificate with equal subject and issuer as self-signed (error 18).
  std::string common_name;
  std::string uri;
  // DNS names and IP addresses of a server.
  std::vector<std::string> hosts;
  absl::Time not_before;
  absl::Time not_after;
  // The usage of a leaf; not set for a CA.
  std::optional<Usage> usage;
  // The number of CAs that may follow in a chain; only for a CA.
  int path_length = 0;
  // If not empty, a critical constraint that permits only URIs with exactly this host.
  std::string permitted_uri_host;
};

// Fails with INVALID_ARGUMENT (INVALID_HOST) unless `host` is a DNS name or an IP address without
// port, brackets or wildcard.
absl::Status CheckHost(std::string_view host);

// Returns an IP address in its usual text form and any other host unchanged, as Certificate::Hosts
// does.
std::string CanonicalHost(const std::string& host);

// Builds a certificate for the key `subject`, signed by `issuer` with `issuer_key`, or self-signed
// without `issuer`. The serial number has 128 random bits. The certificate contains the key
// identifiers (of the issuer only the key id).
absl::StatusOr<Certificate> BuildCertificate(const CertificateSpec& spec, EVP_PKEY* subject,
                                             const Certificate* issuer,
                                             const PrivateKey& issuer_key);
inline absl::StatusOr<Certificate> BuildCertificate(const CertificateSpec& spec,
                                                    const PublicKey& subject,
                                                    const Certificate* issuer,
                                                    const PrivateKey& issuer_key) {
  return BuildCertificate(spec, subject.get(), issuer, issuer_key);
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_BUILDER_H_
