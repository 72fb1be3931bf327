#include "services/common/identity/attach_statement.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"

namespace muster {
namespace {

constexpr size_t kMaxChainPem = 16 * 1024;
// The year 10000, within the range of absl::FromUnixSeconds.
constexpr int64_t kMaxSeconds = 253'402'300'800;

bool MayHangBelow(const Identity& identity) {
  const Role role = RoleOf(identity);
  return role == Role::kNode || role == Role::kRelay;
}

absl::Status CheckTimes(absl::Time expires, absl::Time certificate_end, absl::Time now) {
  if (expires <= now) return errors::AttachStatementRefused("it has expired");
  if (expires > now + kMaxAttachment + kAttachClockSlack) {
    return errors::AttachStatementRefused("it is valid for more than an hour");
  }
  if (expires > certificate_end)
    return errors::AttachStatementRefused("it outlives the certificate of its signer");
  return absl::OkStatus();
}

absl::StatusOr<ServiceIdentity> ReadRelay(const std::string& uri, std::string_view fleet) {
  const auto relay = ParseIdentity(uri, fleet);
  if (!relay.ok()) return errors::AttachStatementRefused(ToStd(relay.status().message()));
  if (RoleOf(*relay) != Role::kRelay)
    return errors::AttachStatementRefused(absl::StrCat(uri, " is not a relay"));
  return std::get<ServiceIdentity>(relay->name);
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
  return statement;
}

absl::StatusOr<VerifiedStatement> VerifyAttachStatement(const v1::AttachStatement& statement,
                                                        std::string_view fleet,
                                                        std::span<const Certificate> roots,
                                                        absl::Time now) {
  const int64_t seconds = statement.expire_time().seconds();
  if (statement.certificate_chain_pem().size() > kMaxChainPem ||
      statement.relay_key_sha256().size() != kSha256Size || seconds < 0 || seconds > kMaxSeconds) {
    return errors::AttachStatementRefused("a field is outside its limits");
  }
  const auto chain = ParseChain(statement.certificate_chain_pem());
  if (!chain.ok()) return errors::AttachStatementRefused(ToStd(chain.status().message()));
  const Certificate& leaf = chain->front();
  const absl::Time expires = absl::FromUnixSeconds(seconds);
  RETURN_IF_ERROR(CheckTimes(expires, leaf.NotAfter(), now));
  const auto uri = leaf.Uri();
  if (!uri.ok() || *uri != statement.child())
    return errors::AttachStatementRefused("the child did not sign it");
  auto child = ParseIdentity(*uri, fleet);
  if (!child.ok()) return errors::AttachStatementRefused(ToStd(child.status().message()));
  if (!MayHangBelow(*child))
    return errors::AttachStatementRefused(absl::StrCat(*uri, " is neither node nor relay"));
  ASSIGN_OR_RETURN(auto relay, ReadRelay(statement.relay(), fleet));
  if (statement.child() == statement.relay())
    return errors::AttachStatementRefused("a relay cannot be its own parent");
  const auto key = leaf.Key();
  if (!key.ok() || !key->Verify(AttachStatementText(statement.child(), statement.relay(),
                                                    statement.relay_key_sha256(), expires),
                                statement.signature())) {
    return errors::AttachStatementRefused("the signature does not match");
  }
  const absl::Status trusted =
      VerifyChain(leaf, std::span(*chain).subspan(1), roots, Usage::kClient, now);
  if (!trusted.ok()) return errors::AttachStatementRefused(ToStd(trusted.message()));
  return VerifiedStatement{*std::move(child), std::move(relay),   statement.relay_key_sha256(),
                           expires,           leaf.IssuerKeyId(), leaf.Serial()};
}

}  // namespace muster
