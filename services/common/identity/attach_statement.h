// Attach statements: the signed permission of a node or relay that its parent may act for it until
// a time.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_ATTACH_STATEMENT_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_ATTACH_STATEMENT_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/attachment.pb.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/key.h"
#include "services/common/identity/verified_chains.h"

namespace muster {

// The longest validity of a statement, and the tolerated clock difference between signer and
// verifier.
inline constexpr absl::Duration kMaxAttachment = absl::Hours(1);
inline constexpr absl::Duration kAttachClockSlack = absl::Minutes(5);

// The largest statement, serialised. A relay sends it in the metadata of each call of the child,
// where a service accepts kMaxMetadataBytes (rpc/limits.h) in all.
inline constexpr size_t kMaxAttachStatement = 5 * 1024;

// The content of a verified statement.
struct VerifiedStatement {
  Identity child;  // a node or a relay
  ServiceIdentity relay;
  std::string relay_key_sha256;  // 32 bytes
  absl::Time expires;
  // Identify the child's certificate, as in Caller, so that its revocation can be checked.
  std::string issuer;
  std::string serial;
};

// Returns the signed text; message AttachStatement of the API specifies it. `child` and `relay` are
// URIs.
std::string AttachStatementText(std::string_view child, std::string_view relay,
                                std::string_view relay_key_sha256, absl::Time expires);

// Signs a statement. `chain_pem`: the child's certificate first, then its issuers.
// `relay_key_sha256`: PublicKey::Sha256 of the key in the certificate that the relay serves with.
// `expires` is truncated to seconds; it must not be later than kMaxAttachment from now or than the
// end of the certificate. Fails with STATEMENT_REFUSED if it is larger than kMaxAttachStatement.
absl::StatusOr<v1::AttachStatement> SignAttachStatement(
    const PrivateKey& key, std::string_view chain_pem, std::string_view child,
    std::string_view relay, std::string_view relay_key_sha256, absl::Time expires);

// Verifies a statement at `now`. The child that it names must have signed it with a certificate
// that chains to one of `roots`. The child must be a node or relay of the fleet, and the relay must
// belong to the fleet. The statement must not have expired. The caller checks that the relay which
// presents it is the named one, and that nothing is revoked. Fails with PERMISSION_DENIED
// (STATEMENT_REFUSED) and the cause.
absl::StatusOr<VerifiedStatement> VerifyAttachStatement(const v1::AttachStatement& statement,
                                                        std::string_view fleet,
                                                        std::span<const Certificate> roots,
                                                        absl::Time now);

// The same, with the roots of `chains`, which remembers the certificates.
absl::StatusOr<VerifiedStatement> VerifyAttachStatement(const v1::AttachStatement& statement,
                                                        std::string_view fleet,
                                                        VerifiedChains& chains, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_ATTACH_STATEMENT_H_
