// X.509 certificates: parsing, reading names, and verification of chains.
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

// The permitted roles in a TLS handshake.
enum class Usage { kClient, kServer, kClientAndServer };

// One X.509 certificate. An immutable value, cheap to copy; thread-safe.
class Certificate {
 public:
  // Reads the first certificate in `pem`. Fails with INVALID_ARGUMENT (CERTIFICATE_MALFORMED).
  static absl::StatusOr<Certificate> FromPem(std::string_view pem);

  // Takes ownership of one reference; `certificate` must not be null.
  static Certificate Adopt(X509* certificate);

  std::string ToPem() const;

  // Returns the only URI of this certificate, unparsed (see ParseIdentity). Fails with
  // PERMISSION_DENIED (CERTIFICATE_WITHOUT_IDENTITY) if it has none, more than one, or one with
  // characters outside printable ASCII. This is the rule for X.509-SVIDs.
  absl::StatusOr<std::string> Uri() const;

  // Returns the DNS names and IP addresses (in their usual text form) of a server certificate.
  std::vector<std::string> Hosts() const;

  // Together these identify the certificate: the key id of its issuer, and its serial number, in
  // lower-case hex. Both certificates of a run CA have the same key id.
  std::string IssuerKeyId() const;
  std::string Serial() const;

  absl::Time NotBefore() const;
  absl::Time NotAfter() const;

  // Returns the certified public key. Fails with KEY_UNSUPPORTED for other kinds of keys.
  absl::StatusOr<PublicKey> Key() const;

  // Returns true if the certified key belongs to this private key.
  bool Matches(const PrivateKey& key) const;

  bool operator==(const Certificate& other) const;

  // Never null; owned by this object.
  X509* get() const { return certificate_.get(); }

 private:
  explicit Certificate(std::shared_ptr<X509> certificate) : certificate_(std::move(certificate)) {}

  std::shared_ptr<X509> certificate_;
};

// Reads all certificates of a PEM text in their order (a leaf first, then its issuers): 1 to 16 in
// at most 256 KiB. Skips other blocks. Fails with INVALID_ARGUMENT (CERTIFICATE_MALFORMED).
absl::StatusOr<std::vector<Certificate>> ParseChain(std::string_view pem);

std::string ChainToPem(std::span<const Certificate> chain);

// Checks a chain by the strict rules of RFC 5280. `leaf` must chain to one of `roots` through
// `intermediates` (in any order) at `now`, and permit `usage`. Every name constraint and path
// length of the chain must hold. Fails with UNAUTHENTICATED (CERTIFICATE_EXPIRED,
// CERTIFICATE_NOT_YET_VALID, CERTIFICATE_WRONG_USAGE or CERTIFICATE_UNTRUSTED).
absl::Status VerifyChain(const Certificate& leaf, std::span<const Certificate> intermediates,
                         std::span<const Certificate> roots, Usage usage, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_CERTIFICATE_H_
