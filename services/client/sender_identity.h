// The identity of a sender: a certificate chain and its key.
#ifndef MUSTER_SERVICES_CLIENT_SENDER_IDENTITY_H_
#define MUSTER_SERVICES_CLIENT_SENDER_IDENTITY_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/client/result_transport.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"

namespace muster::client {

// A sender's certificate and key, which belong together. Immutable; thread-safe.
class SenderIdentity {
 public:
  // Fails with INVALID_ARGUMENT if the PEM texts are malformed or do not belong together, if the
  // certificate contains no identity, or if it has expired at `now`.
  static absl::StatusOr<SenderIdentity> Load(std::string_view chain_pem, std::string_view key_pem,
                                             absl::Time now);

  // Returns the signature of message Signature in results.proto: ECDSA with SHA-256, ASN.1 DER.
  absl::StatusOr<std::string> Sign(const ResultInfo& info, int64_t size,
                                   std::string_view sha256) const;

  // The identity in the certificate.
  const Identity& identity() const { return identity_; }
  const std::string& chain_pem() const { return chain_pem_; }
  absl::Time not_after() const { return not_after_; }

 private:
  SenderIdentity(PrivateKey key, std::string chain_pem, Identity identity, absl::Time not_after);

  PrivateKey key_;
  std::string chain_pem_;
  Identity identity_;
  absl::Time not_after_;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_SENDER_IDENTITY_H_
