// Generated from identity.yaml by services/common/errors/generate: change that file.
// clang-format off
#ifndef MUSTER_SERVICES_COMMON_ERRORS_IDENTITY_H_
#define MUSTER_SERVICES_COMMON_ERRORS_IDENTITY_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

// Identities, certificates and keys.
namespace muster::errors {

// INVALID_ARGUMENT, CERTIFICATE_MALFORMED.
absl::Status CertificateMalformed(std::string_view why);
// INVALID_ARGUMENT, CERTIFICATE_MALFORMED.
absl::Status CertificateFileDamaged(std::string_view path, std::string_view why);
// PERMISSION_DENIED, CERTIFICATE_WITHOUT_IDENTITY.
absl::Status CertificateWithoutIdentity(std::string_view why);
// UNAUTHENTICATED, CERTIFICATE_EXPIRED.
absl::Status CertificateExpired(std::string_view certificate, absl::Time end);
// UNAUTHENTICATED, CERTIFICATE_NOT_YET_VALID.
absl::Status CertificateNotYetValid(std::string_view certificate, absl::Time begin);
// UNAUTHENTICATED, CERTIFICATE_WRONG_USAGE.
absl::Status CertificateWrongUsage(std::string_view certificate);
// UNAUTHENTICATED, CERTIFICATE_UNTRUSTED.
absl::Status CertificateUntrusted(std::string_view certificate, std::string_view why);
// FAILED_PRECONDITION, CERTIFICATE_FILES_UNUSABLE.
absl::Status CertificateFilesUnusable(std::string_view file, std::string_view why);
// PERMISSION_DENIED, IDENTITY_MALFORMED.
absl::Status IdentityMalformed(std::string_view uri, std::string_view why);
// PERMISSION_DENIED, IDENTITY_FOREIGN.
absl::Status IdentityForeign(std::string_view uri, std::string_view fleet);
// INVALID_ARGUMENT, INVALID_FLEET.
absl::Status InvalidFleet(std::string_view fleet, std::string_view why);
// INVALID_ARGUMENT, INVALID_NAME.
absl::Status InvalidIdentity(std::string_view uri);
// INVALID_ARGUMENT, INVALID_HOST.
absl::Status InvalidHost(std::string_view host);
// INVALID_ARGUMENT, KEY_UNSUPPORTED.
absl::Status KeyUnsupported(std::string_view type, std::string_view curve);
// INVALID_ARGUMENT, KEY_MALFORMED.
absl::Status PublicKeyMalformed();
// INVALID_ARGUMENT, KEY_MALFORMED.
absl::Status ReceiverKeyMalformed();
// DATA_LOSS, SEALED_MESSAGE_DAMAGED.
absl::Status SealedMessageDamaged();
// INVALID_ARGUMENT, KEY_MALFORMED.
absl::Status PrivateKeyMalformed(std::string_view why);
// INVALID_ARGUMENT, KEY_MALFORMED.
absl::Status KeyFileDamaged(std::string_view path, std::string_view why);
// INVALID_ARGUMENT, INVALID_KEY.
absl::Status InvalidSigningKey(std::string_view why);
// INVALID_ARGUMENT, INVALID_CSR.
absl::Status InvalidCsr(std::string_view why);
// INTERNAL, CRYPTO_ERROR.
absl::Status CryptoError(std::string_view what, std::string_view why);
// INTERNAL, PKCS12_FAILED.
absl::Status Pkcs12Failed();
// DATA_LOSS, WRAPPED_KEY_DAMAGED.
absl::Status WrappedKeyDamaged(std::string_view run);
// DATA_LOSS, STORE_KEY_MISMATCH.
absl::Status StoreKeyMismatch(std::string_view run);
// FAILED_PRECONDITION, STORE_KEY_MALFORMED.
absl::Status StoreKeyMalformed(std::string_view path);
// FAILED_PRECONDITION, ROOT_KEY_OFFLINE.
absl::Status RootKeyOffline(std::string_view path, std::string_view why);
// FAILED_PRECONDITION, HOME_INCOMPLETE.
absl::Status HomeIncomplete(std::string_view file, std::string_view why, std::string_view next_step);
// FAILED_PRECONDITION, HOME_INCOMPLETE.
absl::Status FleetFileDamaged(std::string_view file);
// NOT_FOUND, HOME_NOT_SET_UP.
absl::Status HomeNotSetUp(std::string_view home);
// FAILED_PRECONDITION, FLEET_EXISTS.
absl::Status FleetExists(std::string_view home, std::string_view fleet, std::string_view other);
// FAILED_PRECONDITION, FLEET_EXISTS.
absl::Status CertificateOfOtherFleet(std::string_view folder, std::string_view fleet);
// FAILED_PRECONDITION, FLEET_EXISTS.
absl::Status ContextOfOtherFleet(std::string_view file, std::string_view other, std::string_view fleet);
// FAILED_PRECONDITION, AUTHORITY_MISMATCH.
absl::Status RootNotInFile(std::string_view file, std::string_view root);
// FAILED_PRECONDITION, AUTHORITY_MISMATCH.
absl::Status AuthorityMismatch(std::string_view what, std::string_view why);
// PERMISSION_DENIED, ISSUER_MAY_NOT_SIGN.
absl::Status IssuerMayNotSign(std::string_view issuer, std::string_view uri, std::string_view why);
// FAILED_PRECONDITION, AUTHORITY_ENDS_EARLIER.
absl::Status AuthorityEndsEarlier(absl::Time end);
// INVALID_ARGUMENT, INVALID_CONTEXT.
absl::Status InvalidContext(std::string_view why);
// NOT_FOUND, CONTEXT_NOT_FOUND.
absl::Status ContextNotFound(std::string_view path);
// PERMISSION_DENIED, STATEMENT_REFUSED.
absl::Status AttachStatementRefused(std::string_view why);
// INVALID_ARGUMENT, INVALID_COMMAND.
absl::Status InvalidCommand(std::string_view why);
// INVALID_ARGUMENT, INVALID_COMMAND.
absl::Status TooManyTargets(int64_t count, int64_t limit);
// PERMISSION_DENIED, COMMAND_REFUSED.
absl::Status CommandNotAccepted(std::string_view why);
// FAILED_PRECONDITION, COMMAND_EARLY.
absl::Status CommandEarly(absl::Time begin);
// FAILED_PRECONDITION, COMMAND_EXPIRED.
absl::Status CommandExpired(absl::Time end);
// INVALID_ARGUMENT, INVALID_REVOCATIONS.
absl::Status InvalidRevocations(std::string_view why);
// UNAUTHENTICATED, REVOCATIONS_REFUSED.
absl::Status RevocationsRefused();
// INVALID_ARGUMENT, INVALID_SHARE.
absl::Status InvalidShare(std::string_view why);
// UNAUTHENTICATED, INVALID_SIGNATURE.
absl::Status InvalidShareSignature(std::string_view why);
// UNIMPLEMENTED, UNKNOWN_METHOD.
absl::Status UnknownMethod(std::string_view method);
// PERMISSION_DENIED, ROLE_NOT_ALLOWED.
absl::Status NotThroughAnother(std::string_view caller, std::string_view method);
// PERMISSION_DENIED, ROLE_NOT_ALLOWED.
absl::Status RoleNotAllowed(std::string_view caller, std::string_view method, std::string_view roles);
// PERMISSION_DENIED, NOT_YOURS.
absl::Status NotYours(std::string_view caller, std::string_view method, std::string_view resource);

}  // namespace muster::errors

#endif  // MUSTER_SERVICES_COMMON_ERRORS_IDENTITY_H_
