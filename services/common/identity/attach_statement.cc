#include "services/common/identity/attach_statement.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"

namespace muster {
namespace {

// The year 10000, within the range of absl::FromUnixSeconds.
constexpr int64_t kMaxSeconds = 253'402'300'800;

bool MayAttach(const Identity& identity) {
  const Role role = RoleOf(identity);
  return role == Role::kNode || role == Role::kRelay;
}

absl::Time ExpiryOf(const v1::AttachStatement& statement) {
  return absl::FromUnixSeconds(statement.expire_time().seconds());
}

// The size with the fields that this version does not know.
absl::Status CheckSize(const v1::AttachStatement& statement) {
  const size_t size = statement.ByteSizeLong();
  if (size <= kMaxAttachStatement) return absl::OkStatus();
  return errors::AttachStatementRefused(absl::StrCat("it has ", size, " bytes, and the limit is ",
                                                     kMaxAttachStatement,
                                                     "; shorten its certificate chain"));
}

// Checks the fields that need no certificate.
absl::Status CheckFields(const v1::AttachStatement& statement, absl::Time now) {
  const int64_t seconds = statement.expire_time().seconds();
  RETURN_IF_ERROR(CheckSize(statement));
  if (statement.relay_key_sha256().size() != kSha256Size || seconds < 0 || seconds > kMaxSeconds) {
    return errors::AttachStatementRefused("a field is outside its limits");
  }
  const absl::Time expires = ExpiryOf(statement);
  if (expires <= now) return errors::AttachStatementRefused("it has expired");
  if (expires > now + kMaxAttachment + kAttachClockSlack) {
    return errors::AttachStatementRefused("it is valid for more than an hour");
  }
  return absl::OkStatus();
}

absl::StatusOr<ServiceIdentity> ReadRelay(const std::string& uri, std::string_view fleet) {
  const auto relay = ParseIdentity(uri, fleet);
  if (!relay.ok()) return errors::AttachStatementRefused(ToStd(relay.status().message()));
  if (RoleOf(*relay) != Role::kRelay)
    return errors::AttachStatementRefused(absl::StrCat(uri, " is not a relay"));
  return std::get<ServiceIdentity>(relay->name);
}

absl::StatusOr<VerifiedStatement> VerifySignedBy(const v1::AttachStatement& statement,
                                                 std::string_view fleet,
                                                 const VerifiedChain& signer) {
  const absl::Time expires = ExpiryOf(statement);
  if (expires > signer.not_after)
    return errors::AttachStatementRefused("it outlives the certificate of its signer");
  if (signer.uri != statement.child())
    return errors::AttachStatementRefused("the child did not sign it");
  auto child = ParseIdentity(signer.uri, fleet);
  if (!child.ok()) return errors::AttachStatementRefused(ToStd(child.status().message()));
  if (!MayAttach(*child))
    return errors::AttachStatementRefused(absl::StrCat(signer.uri, " is neither node nor relay"));
  ASSIGN_OR_RETURN(auto relay, ReadRelay(statement.relay(), fleet));
  if (statement.child() == statement.relay())
    return errors::AttachStatementRefused("a relay cannot be its own parent");
  if (!signer.key.Verify(AttachStatementText(statement.child(), statement.relay(),
                                             statement.relay_key_sha256(), expires),
                         statement.signature())) {
    return errors::AttachStatementRefused("the signature does not match");
  }
  return VerifiedStatement{*std::move(child), std::move(relay), statement.relay_key_sha256(),
                           expires,           signer.issuer,    signer.serial};
}

}  // namespace

std::string AttachStatementText(std::string_view child, std::string_view relay,
                                std::string_view relay_key_sha256, absl::Time expires) {
  return absl::StrCat("muster-attach-v1\n", ToAbsl(child), "\n", ToAbsl(relay), "\n",
                      ToHex(relay_key_sha256), "\n", absl::ToUnixSeconds(expires), "\n");
}

absl::StatusOr<v1::AttachStatement> SignAttachStatement(
    const PrivateKey& key, std::string_view chain_pem, std::string_view child,
    std::string_view relay, std::string_view relay_key_sha256, absl::Time expires) {
  ASSIGN_OR_RETURN(auto signature,
                   key.Sign(AttachStatementText(child, relay, relay_key_sha256, expires)));
  v1::AttachStatement statement;
  statement.set_child(std::string(child));
  statement.set_relay(std::string(relay));
  statement.set_relay_key_sha256(std::string(relay_key_sha256));
  statement.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(expires));
  statement.set_signature(std::move(signature));
  statement.set_certificate_chain_pem(std::string(chain_pem));
  RETURN_IF_ERROR(CheckSize(statement));
  return statement;
}

absl::StatusOr<VerifiedStatement> VerifyAttachStatement(const v1::AttachStatement& statement,
                                                        std::string_view fleet,
                                                        std::span<const Certificate> roots,
                                                        absl::Time now) {
  RETURN_IF_ERROR(CheckFields(statement, now));
  const auto signer = VerifyClientChain(statement.certificate_chain_pem(), roots, now);
  if (!signer.ok()) return errors::AttachStatementRefused(ToStd(signer.status().message()));
  return VerifySignedBy(statement, fleet, *signer);
}

absl::StatusOr<VerifiedStatement> VerifyAttachStatement(const v1::AttachStatement& statement,
                                                        std::string_view fleet,
                                                        VerifiedChains& chains, absl::Time now) {
  RETURN_IF_ERROR(CheckFields(statement, now));
  const auto signer = chains.Verify(statement.certificate_chain_pem());
  if (!signer.ok()) return errors::AttachStatementRefused(ToStd(signer.status().message()));
  return VerifySignedBy(statement, fleet, **signer);
}

}  // namespace muster
