// Makes and signs one certificate; for the authorities of this folder only.
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
  // A label for people, cut to 64 bytes. A leaf's must differ from its issuer's: OpenSSL takes a
  // certificate whose subject is its issuer for self-signed (error 18).
  std::string common_name;
  std::string uri;
  // DNS names and IP addresses of a server.
  std::vector<std::string> hosts;
  absl::Time not_before;
  absl::Time not_after;
  // A leaf's usage, or for an authority nothing.
  std::optional<Usage> usage;
  // How many authorities may stand below; for an authority only.
  int path_length = 0;
  // If not empty: a critical constraint that admits URIs with exactly this host, and none below it.
  std::string permitted_uri_host;
};

// INVALID_ARGUMENT, reason INVALID_HOST, unless `host` is a DNS name or an IP address without port,
// brackets or wildcard.
absl::Status CheckHost(std::string_view host);

// An IP address in its usual text form, any other host as it is: as Certificate::Hosts gives it.
std::string CanonicalHost(const std::string& host);

// A certificate for the key `subject`, signed by `issuer` with `issuer_key`; without `issuer`
// self-signed. The serial number is 128 random bits; key identifiers are there (the issuer's by key
// id only).
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
