// A node's or relay's word that the relay it hangs below may speak for it, until a time.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_ATTACH_STATEMENT_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_ATTACH_STATEMENT_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"

namespace muster {

// The longest that a statement may last from when it is shown, and how far the clocks of the one
// who signed and the one who reads may be apart.
inline constexpr absl::Duration kMaxAttachment = absl::Hours(1);
inline constexpr absl::Duration kAttachClockSlack = absl::Minutes(5);

// What a statement that holds says.
struct VerifiedStatement {
  Identity child;  // a node or a relay
  ServiceIdentity relay;
  std::string relay_key_sha256;  // 32 bytes
  absl::Time expires;
  // Name the child's certificate, as in Caller: to ask whether it is revoked.
  std::string issuer;
  std::string serial;
};

// The text under the signature; message AttachStatement of the API states it. `child` and `relay`
// are URIs.
std::string AttachStatementText(std::string_view child, std::string_view relay,
                                std::string_view relay_key_sha256, absl::Time expires);

// `chain_pem`: the child's certificate first, then its issuers; `relay_key_sha256`:
// PublicKey::Sha256 of the key in the certificate that the relay serves with. Whole seconds of
// `expires` count; choose it no later than kMaxAttachment from now and the end of the certificate.
absl::StatusOr<v1::AttachStatement> SignAttachStatement(
    const PrivateKey& key, std::string_view chain_pem, std::string_view child,
    std::string_view relay, std::string_view relay_key_sha256, absl::Time expires);

// Whether it is signed by the child that it names, a node or relay of the fleet whose certificate
// leads to one of `roots` at `now`, for a relay of the fleet, and is live. That the relay is the
// one which shows it, and that nobody is revoked, is the caller's to check. PERMISSION_DENIED,
// reason STATEMENT_REFUSED, with the cause.
absl::StatusOr<VerifiedStatement> VerifyAttachStatement(const v1::AttachStatement& statement,
                                                        std::string_view fleet,
                                                        std::span<const Certificate> roots,
                                                        absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_ATTACH_STATEMENT_H_
