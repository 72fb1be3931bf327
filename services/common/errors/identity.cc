// Generated from identity.yaml by services/common/errors/generate: change that file.
// clang-format off
#include "services/common/errors/identity.h"

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"

namespace muster::errors {

absl::Status CertificateMalformed(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CERTIFICATE_MALFORMED",
                   absl::StrCat("invalid PEM certificate: ", ToAbsl(why)),
                   "Give the file as it was issued, from BEGIN to END CERTIFICATE.");
}

absl::Status CertificateFileDamaged(std::string_view path, std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "CERTIFICATE_MALFORMED",
                   absl::StrCat(ToAbsl(path), ": ", ToAbsl(why)),
                   "Restore the file from a backup. If it is in the folder tls of a service, remove it instead, and run `muster up`, which issues a new certificate; if it is in the folder of a joined node or relay, join again with a new token and an empty folder.");
}

absl::Status CertificateWithoutIdentity(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "CERTIFICATE_WITHOUT_IDENTITY",
                   absl::StrCat("the certificate ", ToAbsl(why)),
                   "Use a certificate of this fleet's aggregator, which has exactly one URI.");
}

absl::Status CertificateExpired(std::string_view certificate, absl::Time end) {
  return MakeError(absl::StatusCode::kUnauthenticated, "CERTIFICATE_EXPIRED",
                   absl::StrCat(ToAbsl(certificate), " or one of its issuers has expired; the certificate expires at ", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", end, absl::UTCTimeZone())),
                   "Get a new certificate, and check the clock of this machine.");
}

absl::Status CertificateNotYetValid(std::string_view certificate, absl::Time begin) {
  return MakeError(absl::StatusCode::kUnauthenticated, "CERTIFICATE_NOT_YET_VALID",
                   absl::StrCat(ToAbsl(certificate), " or one of its issuers is not valid yet; the certificate is valid from ", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", begin, absl::UTCTimeZone())),
                   "Check the clock of this machine.");
}

absl::Status CertificateWrongUsage(std::string_view certificate) {
  return MakeError(absl::StatusCode::kUnauthenticated, "CERTIFICATE_WRONG_USAGE",
                   absl::StrCat(ToAbsl(certificate), " may not be used on this side of a connection"),
                   "Use a client certificate to dial and a server certificate to listen.");
}

absl::Status CertificateUntrusted(std::string_view certificate, std::string_view why) {
  return MakeError(absl::StatusCode::kUnauthenticated, "CERTIFICATE_UNTRUSTED",
                   absl::StrCat(ToAbsl(certificate), " is not trusted: ", ToAbsl(why)),
                   "Check that the certificate, its issuers and the root belong to one fleet.");
}

absl::Status CertificateFilesUnusable(std::string_view file, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "CERTIFICATE_FILES_UNUSABLE",
                   absl::StrCat(ToAbsl(file), ": ", ToAbsl(why)),
                   "Run `muster up` on the machine with the fleet's root key, which creates missing files. Use the key, the certificate and the root of the same service and fleet.");
}

absl::Status IdentityMalformed(std::string_view uri, std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "IDENTITY_MALFORMED",
                   absl::StrCat("invalid identity ", ToAbsl(uri), " in the certificate: ", ToAbsl(why)),
                   "Use a certificate that this fleet's aggregator issued.");
}

absl::Status IdentityForeign(std::string_view uri, std::string_view fleet) {
  return MakeError(absl::StatusCode::kPermissionDenied, "IDENTITY_FOREIGN",
                   absl::StrCat("identity ", ToAbsl(uri), " does not belong to fleet ", ToAbsl(fleet)),
                   "Check that client and server belong to the same fleet.");
}

absl::Status InvalidFleet(std::string_view fleet, std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_FLEET",
                   absl::StrCat("invalid fleet name ", ToAbsl(fleet), ": ", ToAbsl(why)),
                   "Use a name like \"fleet.example.com\": labels of a-z, 0-9 and inner hyphens.");
}

absl::Status InvalidIdentity(std::string_view uri) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_NAME",
                   absl::StrCat("invalid identity ", ToAbsl(uri)),
                   "Use names of 1 to 253 of A-Z a-z 0-9 . _ - that do not begin with a dot, run ids of 16 lower-case hex digits, and no node \"global\".");
}

absl::Status InvalidHost(std::string_view host) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_HOST",
                   absl::StrCat("\"", ToAbsl(host), "\" is neither a host name nor an IP address"),
                   "Give names or addresses without port, brackets or wildcard.");
}

absl::Status KeyUnsupported(std::string_view type, std::string_view curve) {
  return MakeError(absl::StatusCode::kInvalidArgument, "KEY_UNSUPPORTED",
                   absl::StrCat("the key is of type ", ToAbsl(type), curve.empty() ? "" : " ", ToAbsl(curve), ", neither P-256 nor P-384"),
                   "Create the key with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256.");
}

absl::Status PublicKeyMalformed() {
  return MakeError(absl::StatusCode::kInvalidArgument, "KEY_MALFORMED",
                   "invalid PEM public key",
                   "Give a PEM \"PUBLIC KEY\".");
}

absl::Status ReceiverKeyMalformed() {
  return MakeError(absl::StatusCode::kInvalidArgument, "KEY_MALFORMED",
                   "invalid public key of X25519",
                   "Send the 32 bytes of a new key.");
}

absl::Status SealedMessageDamaged() {
  return MakeError(absl::StatusCode::kDataLoss, "SEALED_MESSAGE_DAMAGED",
                   "a sealed message cannot be opened with this key and these data",
                   "Request it again with a new key.");
}

absl::Status PrivateKeyMalformed(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "KEY_MALFORMED",
                   absl::StrCat("invalid PEM private key", why.empty() ? "" : ": ", ToAbsl(why)),
                   "Give an unencrypted PEM key: \"PRIVATE KEY\" or \"EC PRIVATE KEY\".");
}

absl::Status KeyFileDamaged(std::string_view path, std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "KEY_MALFORMED",
                   absl::StrCat(ToAbsl(path), ": ", ToAbsl(why)),
                   "Restore the file from a backup. If it is in the folder tls of a service, remove it instead, and run `muster up`, which issues a new key and certificate; if it is in the folder of a joined node or relay, join again with a new token and an empty folder.");
}

absl::Status InvalidSigningKey(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_KEY",
                   absl::StrCat("invalid signing key: ", ToAbsl(why)),
                   "Create the key with: openssl genpkey -algorithm ED25519.");
}

absl::Status InvalidCsr(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CSR",
                   absl::StrCat("invalid signing request: ", ToAbsl(why)),
                   "Send a PKCS#10 request in PEM, signed with its own P-256 key.");
}

absl::Status CryptoError(std::string_view what, std::string_view why) {
  return MakeError(absl::StatusCode::kInternal, "CRYPTO_ERROR",
                   absl::StrCat("cannot ", ToAbsl(what), ": ", ToAbsl(why)),
                   "Check the OpenSSL installation and its configuration.");
}

absl::Status Pkcs12Failed() {
  return MakeError(absl::StatusCode::kInternal, "PKCS12_FAILED",
                   "cannot put the certificate and its key into a PKCS#12 file",
                   "Check that the key belongs to the certificate.");
}

absl::Status WrappedKeyDamaged(std::string_view run) {
  return MakeError(absl::StatusCode::kDataLoss, "WRAPPED_KEY_DAMAGED",
                   absl::StrCat("a key of run ", ToAbsl(run), " is damaged in the store"),
                   "Restore the store from a backup, or cancel the run.");
}

absl::Status StoreKeyMismatch(std::string_view run) {
  return MakeError(absl::StatusCode::kDataLoss, "STORE_KEY_MISMATCH",
                   absl::StrCat("a key of run ", ToAbsl(run), " was encrypted with another store key"),
                   "Restore the store.key that belongs to this store.");
}

absl::Status StoreKeyMalformed(std::string_view path) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "STORE_KEY_MALFORMED",
                   absl::StrCat(ToAbsl(path), " contains no store key"),
                   "Restore the file from a backup: the keys of active runs cannot be read without it.");
}

absl::Status RootKeyOffline(std::string_view path, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "ROOT_KEY_OFFLINE",
                   absl::StrCat("the fleet's root key ", ToAbsl(path), " is required but missing: ", ToAbsl(why)),
                   "Restore the root key temporarily, and run `muster up` again.");
}

absl::Status HomeIncomplete(std::string_view file, std::string_view why, std::string_view next_step) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "HOME_INCOMPLETE",
                   absl::StrCat(ToAbsl(file), " is missing although ", ToAbsl(why)),
                   next_step);
}

absl::Status FleetFileDamaged(std::string_view file) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "HOME_INCOMPLETE",
                   absl::StrCat(ToAbsl(file), " names no fleet"),
                   "Restore it from a backup.");
}

absl::Status HomeNotSetUp(std::string_view home) {
  return MakeError(absl::StatusCode::kNotFound, "HOME_NOT_SET_UP",
                   absl::StrCat("no fleet found in ", ToAbsl(home)),
                   "Run `muster up`, or set MUSTER_HOME.");
}

absl::Status FleetExists(std::string_view home, std::string_view fleet, std::string_view other) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "FLEET_EXISTS",
                   absl::StrCat(ToAbsl(home), " belongs to fleet ", ToAbsl(fleet), ", not to ", ToAbsl(other)),
                   "Use another MUSTER_HOME for another fleet; the name of a fleet cannot change.");
}

absl::Status CertificateOfOtherFleet(std::string_view folder, std::string_view fleet) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "FLEET_EXISTS",
                   absl::StrCat("the certificate in ", ToAbsl(folder), " belongs to fleet ", ToAbsl(fleet)),
                   "Move the folder away; `muster up` then creates a new certificate.");
}

absl::Status ContextOfOtherFleet(std::string_view file, std::string_view other, std::string_view fleet) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "FLEET_EXISTS",
                   absl::StrCat(ToAbsl(file), " is for fleet ", ToAbsl(other), ", but the fleet of this home is ", ToAbsl(fleet)),
                   "Move the file away; `muster up` then creates one for this fleet.");
}

absl::Status RootNotInFile(std::string_view file, std::string_view root) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "AUTHORITY_MISMATCH",
                   absl::StrCat(ToAbsl(file), " does not contain the fleet's root certificate"),
                   absl::StrCat("Add ", ToAbsl(root), " to it."));
}

absl::Status AuthorityMismatch(std::string_view what, std::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "AUTHORITY_MISMATCH",
                   absl::StrCat(ToAbsl(what), ": ", ToAbsl(why)),
                   "Restore the matching key and certificate from a backup.");
}

absl::Status IssuerMayNotSign(std::string_view issuer, std::string_view uri, std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "ISSUER_MAY_NOT_SIGN",
                   absl::StrCat(ToAbsl(issuer), " may not sign ", ToAbsl(uri), ": ", ToAbsl(why)),
                   "Request a certificate for a name that this CA may sign.");
}

absl::Status AuthorityEndsEarlier(absl::Time end) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "AUTHORITY_ENDS_EARLIER",
                   absl::StrCat("the fleet's intermediate certificate expires at ", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", end, absl::UTCTimeZone()), ", before the run's credentials"),
                   "Renew the intermediate CA with `muster up` on the machine with the root key, or shorten the timeout of the run.");
}

absl::Status InvalidContext(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_CONTEXT",
                   why,
                   "Use the unchanged file that `muster operator add` or `muster up` wrote, or create a new one.");
}

absl::Status ContextNotFound(std::string_view path) {
  return MakeError(absl::StatusCode::kNotFound, "CONTEXT_NOT_FOUND",
                   absl::StrCat("operator context ", ToAbsl(path), " not found"),
                   "Start the services with `muster up`, or name a context file (--context FILE or MUSTER_CONTEXT).");
}

absl::Status AttachStatementRefused(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "STATEMENT_REFUSED",
                   absl::StrCat("the attach statement is not accepted: ", ToAbsl(why)),
                   "Sign a new statement for this relay with the current certificate, and check the clocks of both machines.");
}

absl::Status InvalidCommand(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_COMMAND",
                   absl::StrCat("invalid command: ", ToAbsl(why)),
                   "Observe the limits of message Command in proto/muster/v1/jobs.proto.");
}

absl::Status TooManyTargets(int64_t count, int64_t limit) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_COMMAND",
                   absl::StrCat("a command for ", count, " nodes: the limit is ", limit),
                   "Send it to all nodes with --all, or in several commands, each with a part of the nodes.");
}

absl::Status CommandNotAccepted(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "COMMAND_REFUSED",
                   absl::StrCat("the command is not accepted: ", ToAbsl(why)),
                   "Sign it again for this fleet and these nodes, with a certificate of the fleet's command authority.");
}

absl::Status CommandEarly(absl::Time begin) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "COMMAND_EARLY",
                   absl::StrCat("the command is not valid before ", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", begin, absl::UTCTimeZone())),
                   "Sign it again, and check the clocks of both machines.");
}

absl::Status CommandExpired(absl::Time end) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "COMMAND_EXPIRED",
                   absl::StrCat("the command expired at ", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", end, absl::UTCTimeZone())),
                   "Sign it again, and check the clocks of both machines.");
}

absl::Status InvalidRevocations(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_REVOCATIONS",
                   absl::StrCat("invalid list of revoked signers: ", ToAbsl(why)),
                   "Use the unchanged list of the aggregator.");
}

absl::Status RevocationsRefused() {
  return MakeError(absl::StatusCode::kUnauthenticated, "REVOCATIONS_REFUSED",
                   "the list of revoked signers was not signed by this fleet's command authority",
                   "Check that the pinned command authority and the list belong to the same fleet.");
}

absl::Status InvalidShare(std::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "INVALID_SHARE",
                   absl::StrCat("invalid shared file: ", ToAbsl(why)),
                   "Name nodes as source and target, and use an id of at most 253 of A-Z a-z 0-9 . _ - that begins with a letter or digit.");
}

absl::Status InvalidShareSignature(std::string_view why) {
  return MakeError(absl::StatusCode::kUnauthenticated, "INVALID_SIGNATURE",
                   absl::StrCat("the signature of the shared file is not accepted: ", ToAbsl(why)),
                   "Sign the text that the API describes with the key of the source, and check the clocks of node and relay.");
}

absl::Status UnknownMethod(std::string_view method) {
  return MakeError(absl::StatusCode::kUnimplemented, "UNKNOWN_METHOD",
                   absl::StrCat("method ", ToAbsl(method), " has no row in the authorisation table"),
                   "Check the name of the method, and that client and server have the same version.");
}

absl::Status NotThroughAnother(std::string_view caller, std::string_view method) {
  return MakeError(absl::StatusCode::kPermissionDenied, "ROLE_NOT_ALLOWED",
                   absl::StrCat(ToAbsl(caller), " may not call ", ToAbsl(method), " through a gateway or relay"),
                   "Call the service directly, with the certificate of the caller.");
}

absl::Status RoleNotAllowed(std::string_view caller, std::string_view method, std::string_view roles) {
  return MakeError(absl::StatusCode::kPermissionDenied, "ROLE_NOT_ALLOWED",
                   absl::StrCat(ToAbsl(caller), " may not call ", ToAbsl(method)),
                   absl::StrCat("Use the certificate of one of: ", ToAbsl(roles), "."));
}

absl::Status NotYours(std::string_view caller, std::string_view method, std::string_view resource) {
  return MakeError(absl::StatusCode::kPermissionDenied, "NOT_YOURS",
                   absl::StrCat(ToAbsl(caller), " may not call ", ToAbsl(method), " for ", ToAbsl(resource)),
                   "Use a certificate that names the resource; an operator exports one with `muster credentials export`.");
}

}  // namespace muster::errors
