#include "services/common/rpc/caller.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/relay.h"
#include "services/common/errors/rpc.h"
#include "services/common/identity/attach_statement.h"

namespace muster {
namespace {

constexpr size_t kMaxCertificateName = 128;

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

absl::Status NotForwardable(std::string_view why) {
  return errors::IdentityNotForwardable(kForwardedIdentity, why);
}

// Returns the value of a key that occurs once.
absl::StatusOr<std::string_view> OnlyValue(const Metadata& metadata, const char* key) {
  const auto values = metadata.equal_range(key);
  if (values.first == values.second) return NotForwardable(absl::StrCat(key, " is missing"));
  if (std::next(values.first) != values.second) return NotForwardable("sent more than once");
  return std::string_view(values.first->second.data(), values.first->second.size());
}

// Removes the expired entries of a full map, or all if none has expired.
template <typename Map>
void PruneFullMap(Map& map, size_t limit, absl::Time now) {
  if (map.size() < limit) return;
  absl::erase_if(map, [now](const auto& entry) { return entry.second.expires <= now; });
  if (map.size() >= limit) map.clear();
}

}  // namespace

absl::StatusOr<CallerResolver::Peer> CallerResolver::PeerOf(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> pem = context.FindPropertyValues("x509_pem_cert");
  if (!context.IsPeerAuthenticated() || pem.size() != 1) {
    return errors::NoCertificate();
  }
  const std::string_view key(pem[0].data(), pem[0].size());
  {
    MutexLock lock(mutex_);
    if (const auto it = peers_.find(ToAbsl(key)); it != peers_.end()) return it->second;
  }
  auto peer = Read(key);
  if (!peer.ok()) return peer.status();
  MutexLock lock(mutex_);
  if (peers_.size() >= limits_.certificates) peers_.clear();
  peers_.emplace(std::string(key), *peer);
  return peer;
}

absl::StatusOr<CallerResolver::Peer> CallerResolver::Read(std::string_view pem) const {
  ASSIGN_OR_RETURN(const auto certificate, Certificate::FromPem(pem));
  ASSIGN_OR_RETURN(const auto uri, certificate.Uri());
  ASSIGN_OR_RETURN(auto identity, ParseIdentity(uri, fleet_));
  auto caller = std::make_shared<Caller>();
  caller->identity = std::move(identity);
  caller->issuer = certificate.IssuerKeyId();
  caller->serial = certificate.Serial();
  caller->expires = certificate.NotAfter();
  return Peer{std::move(caller), certificate.NotAfter()};
}

absl::StatusOr<std::shared_ptr<const Caller>> CallerResolver::Resolve(
    const grpc::AuthContext& context,
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  ASSIGN_OR_RETURN(auto peer, PeerOf(context));
  if (clock_.Now() > peer.not_after) {
    return errors::ConnectionCertificateExpired();
  }
  if (metadata.find(kForwardedIdentity) == metadata.end()) return std::move(peer.caller);
  const Role role = RoleOf(peer.caller->identity);
  if (role != Role::kGateway && role != Role::kRelay) {
    return NotForwardable("sent by another than a gateway or a relay");
  }
  ASSIGN_OR_RETURN(const auto uri, OnlyValue(metadata, kForwardedIdentity));
  const bool names_certificate = metadata.find(kForwardedCertificate) != metadata.end();
  if (role == Role::kRelay) {
    // The name of a certificate is part of the key under which the waiting calls of the node are
    // counted.
    if (names_certificate) return NotForwardable("a relay names no certificate of its client");
    ASSIGN_OR_RETURN(const auto bytes, OnlyValue(metadata, kAttachStatement));
    ASSIGN_OR_RETURN(auto forwarded, ResolveForwarded(*peer.caller, uri, bytes));
    return std::move(forwarded.caller);
  }
  ASSIGN_OR_RETURN(auto identity, ParseIdentity(uri, fleet_));
  auto caller = std::make_shared<Caller>(*peer.caller);
  caller->via = std::exchange(caller->identity, std::move(identity));
  if (!names_certificate) return caller;
  ASSIGN_OR_RETURN(const auto certificate, OnlyValue(metadata, kForwardedCertificate));
  if (certificate.size() > kMaxCertificateName) {
    return NotForwardable("the name of the certificate is too long");
  }
  caller->forwarded_certificate = std::string(certificate);
  return caller;
}

absl::StatusOr<CallerResolver::ForwardedCaller> CallerResolver::ResolveForwarded(
    const Caller& relay, std::string_view uri, std::string_view statement) {
  ASSIGN_OR_RETURN(auto identity, ParseIdentity(uri, fleet_));
  if (!std::holds_alternative<NodeIdentity>(identity.name)) {
    return NotForwardable("the forwarded identity is no node's");
  }
  return ResolveChild(relay, std::move(identity), statement);
}

absl::StatusOr<CallerResolver::ForwardedCaller> CallerResolver::ResolveForwardedRelay(
    const Caller& ancestor, const std::string& name, std::string_view statement) {
  return ResolveChild(ancestor, {fleet_, ServiceIdentity{ServiceRole::kRelay, name}}, statement);
}

absl::StatusOr<CallerResolver::ForwardedCaller> CallerResolver::ResolveChild(
    const Caller& relay, Identity child, std::string_view statement) {
  ASSIGN_OR_RETURN(const auto uri, ToUri(child));
  ASSIGN_OR_RETURN(auto verified, StatementOf(statement));
  if (verified.child != child) return NotForwardable("the attach statement is another child's");
  if (IsSuperseded(uri, verified)) return errors::NotAttached(uri);
  auto caller = std::make_shared<Caller>(relay);
  caller->statement_issuer = std::move(verified.issuer);
  caller->statement_serial = std::move(verified.serial);
  caller->via = std::exchange(caller->identity, std::move(child));
  return ForwardedCaller{std::move(caller), verified.expires, std::move(verified.relay)};
}

absl::StatusOr<CallerResolver::Statement> CallerResolver::StatementOf(std::string_view bytes) {
  if (bytes.size() > kMaxAttachStatement) return NotForwardable("the attach statement is too long");
  std::string digest = DigestBytes(Sha256::Of(bytes));
  {
    const MutexLock lock(mutex_);
    const auto it = statements_.find(digest);
    if (it != statements_.end() && clock_.Now() < it->second.expires) return it->second;
  }
  auto statement = VerifyStatement(bytes);
  if (statement.ok()) Remember(std::move(digest), *statement);
  return statement;
}

absl::StatusOr<CallerResolver::Statement> CallerResolver::VerifyStatement(
    std::string_view bytes) const {
  if (chains_ == nullptr) return NotForwardable("relays do not forward to this service");
  v1::AttachStatement message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return NotForwardable("the attach statement cannot be read");
  }
  auto verified = VerifyAttachStatement(message, fleet_, *chains_, clock_.Now());
  if (!verified.ok()) return NotForwardable(ToStd(verified.status().message()));
  return Statement{std::move(verified->child), verified->relay.name, std::move(verified->issuer),
                   std::move(verified->serial), verified->expires};
}

void CallerResolver::Remember(std::string digest, const Statement& statement) {
  const MutexLock lock(mutex_);
  PruneFullMap(statements_, limits_.statements, clock_.Now());
  statements_.insert_or_assign(std::move(digest), statement);
}

bool CallerResolver::IsSuperseded(const std::string& child, const Statement& statement) {
  const MutexLock lock(mutex_);
  if (!newest_.contains(child)) PruneFullMap(newest_, limits_.statements, clock_.Now());
  Newest& newest = newest_[child];
  if (Supersedes(newest, statement.relay, statement.expires)) return true;
  if (statement.expires > newest.expires) newest = {statement.relay, statement.expires};
  return false;
}

bool CallerResolver::HasMoved(std::string_view child, std::string_view relay,
                              absl::Time expires) const {
  const MutexLock lock(mutex_);
  const auto newest = newest_.find(ToAbsl(child));
  return newest != newest_.end() && Supersedes(newest->second, relay, expires);
}

// A child that moves signs for both parents for a moment, and its clock may be set back by at most
// kAttachClockSlack.
bool CallerResolver::Supersedes(const Newest& newest, std::string_view relay, absl::Time expires) {
  return newest.relay != relay && expires + kAttachClockSlack < newest.expires;
}

}  // namespace muster
