#include "services/common/rpc/caller.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/identity/certificate.h"

namespace muster {
namespace {

// Certificates remembered at a time; when there are more, all are forgotten and parsed anew.
constexpr size_t kMaxRemembered = 20'000;

absl::Status NotForwardable(std::string_view why) {
  return MakeError(absl::StatusCode::kPermissionDenied, "IDENTITY_NOT_FORWARDABLE",
                   absl::StrCat("metadata ", kForwardedIdentity, ": ", std::string(why)),
                   "Only the gateway may name the identity of its client, and only once.");
}

}  // namespace

absl::StatusOr<CallerResolver::Peer> CallerResolver::PeerOf(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> pem = context.FindPropertyValues("x509_pem_cert");
  if (!context.IsPeerAuthenticated() || pem.size() != 1) {
    return MakeError(absl::StatusCode::kUnauthenticated, "NO_CERTIFICATE",
                     "the connection carries no verified certificate",
                     "Connect over TLS with a client certificate of this fleet.");
  }
  const std::string_view key(pem[0].data(), pem[0].size());
  {
    std::lock_guard lock(mutex_);
    if (const auto it = peers_.find(ToAbsl(key)); it != peers_.end()) return it->second;
  }
  auto peer = Read(key);
  if (!peer.ok()) return peer.status();
  std::lock_guard lock(mutex_);
  if (peers_.size() >= kMaxRemembered) peers_.clear();
  peers_.emplace(std::string(key), *peer);
  return peer;
}

absl::StatusOr<CallerResolver::Peer> CallerResolver::Read(std::string_view pem) const {
  const auto certificate = Certificate::FromPem(pem);
  if (!certificate.ok()) return certificate.status();
  const auto uri = certificate->Uri();
  if (!uri.ok()) return uri.status();
  auto identity = ParseIdentity(*uri, fleet_);
  if (!identity.ok()) return identity.status();
  auto caller = std::make_shared<Caller>();
  caller->identity = *std::move(identity);
  caller->issuer = certificate->IssuerKeyId();
  caller->serial = certificate->Serial();
  return Peer{std::move(caller), certificate->NotAfter()};
}

absl::StatusOr<std::shared_ptr<const Caller>> CallerResolver::Resolve(
    const grpc::AuthContext& context,
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  auto peer = PeerOf(context);
  if (!peer.ok()) return peer.status();
  if (clock_.Now() > peer->not_after) {
    return MakeError(absl::StatusCode::kUnauthenticated, "CERTIFICATE_EXPIRED",
                     "the certificate of this connection has ended", "Renew it and connect again.");
  }
  const auto forwarded = metadata.equal_range(kForwardedIdentity);
  if (forwarded.first == forwarded.second) return std::move(peer->caller);
  if (RoleOf(peer->caller->identity) != Role::kGateway)
    return NotForwardable("sent by another than a gateway");
  if (std::next(forwarded.first) != forwarded.second) return NotForwardable("sent more than once");
  const grpc::string_ref uri = forwarded.first->second;
  auto identity = ParseIdentity({uri.data(), uri.size()}, fleet_);
  if (!identity.ok()) return identity.status();
  auto caller = std::make_shared<Caller>(*peer->caller);
  caller->via = std::exchange(caller->identity, *std::move(identity));
  return caller;
}

}  // namespace muster
