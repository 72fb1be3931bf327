// Certificates: reading them, asking them who they name, and checking a chain.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_H_

#include <openssl/types.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/key.h"

namespace muster {

// What the holder of a certificate may be in a TLS handshake.
enum class Usage { kClient, kServer, kClientAndServer };

// One X.509 certificate. An immutable value, cheap to copy; thread-safe.
class Certificate {
 public:
  // The first certificate in `pem`. INVALID_ARGUMENT, reason CERTIFICATE_MALFORMED.
  static absl::StatusOr<Certificate> FromPem(std::string_view pem);

  // Takes over one reference; `certificate` must not be null.
  static Certificate Adopt(X509* certificate);

  std::string ToPem() const;

  // The one URI this certificate names, as it stands there (ParseIdentity judges it).
  // PERMISSION_DENIED, reason CERTIFICATE_WITHOUT_IDENTITY, if it has none, more than one, or one
  // with characters outside printable ASCII. The X.509-SVID rule.
  absl::StatusOr<std::string> Uri() const;

  // The DNS names and IP addresses (in their usual text form) that a server's certificate names.
  std::vector<std::string> Hosts() const;

  // Together these name the certificate: the key id of its issuer (the key, not the certificate:
  // both certificates of a run's CA have the same) and its serial number; lower-case hex.
  std::string IssuerKeyId() const;
  std::string Serial() const;

  // The key id of its own key, lower-case hex; empty if it carries none.
  std::string SubjectKeyId() const;

  absl::Time NotBefore() const;
  absl::Time NotAfter() const;

  // The key it vouches for. KEY_UNSUPPORTED if that is of another kind.
  absl::StatusOr<PublicKey> Key() const;

  // Whether it vouches for this private key.
  bool Matches(const PrivateKey& key) const;

  bool operator==(const Certificate& other) const;

  // Never null; owned by this object.
  X509* get() const { return certificate_.get(); }

 private:
  explicit Certificate(std::shared_ptr<X509> certificate) : certificate_(std::move(certificate)) {}

  std::shared_ptr<X509> certificate_;
};

// All certificates of a PEM text in their order (a leaf first, then its issuers): 1 to 16 of them
// in at most 256 KiB. Other blocks are skipped. INVALID_ARGUMENT, reason CERTIFICATE_MALFORMED.
absl::StatusOr<std::vector<Certificate>> ParseChain(std::string_view pem);

std::string ChainToPem(std::span<const Certificate> chain);

// Checks that `leaf` leads to one of `roots` over `intermediates` (their order does not matter) at
// the time `now`, may be used as `usage`, and keeps every name constraint and path length on the
// way. By RFC 5280, strictly. UNAUTHENTICATED with reason CERTIFICATE_EXPIRED,
// CERTIFICATE_NOT_YET_VALID, CERTIFICATE_WRONG_USAGE or CERTIFICATE_UNTRUSTED.
absl::Status VerifyChain(const Certificate& leaf, std::span<const Certificate> intermediates,
                         std::span<const Certificate> roots, Usage usage, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_H_
