// The identity of callers: from the verified certificate, from the gateway that verified it, or
// from the statement that the node signed for its relay.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALLER_H_
#define MUSTER_SERVICES_COMMON_RPC_CALLER_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/string_ref.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/identity/verified_chains.h"
#include "services/common/rpc/forwarding.h"

namespace muster {

// The number of entries remembered at a time. When there are more, they are forgotten, and verified
// again.
struct RememberedCallers {
  size_t certificates = 20'000;
  // As many as there are nodes behind relays; they live for an hour.
  size_t statements = 100'000;
};

// Thread-safe.
class CallerResolver {
 public:
  // `chains` verifies the certificates in statements. Null: no relay may forward a call. The
  // references outlive this object.
  CallerResolver(std::string fleet, const Clock& clock, VerifiedChains* chains = nullptr,
                 const RememberedCallers& limits = {})
      : fleet_(std::move(fleet)), clock_(clock), chains_(chains), limits_(limits) {}

  // Returns the caller of an RPC. UNAUTHENTICATED without exactly one URI in the certificate of the
  // peer, or if the certificate has expired since the connection was made (CERTIFICATE_EXPIRED).
  // PERMISSION_DENIED (IDENTITY_NOT_FORWARDABLE) if the peer may not forward the identity: only
  // gateways and relays forward any, and a relay needs the live attach statement of a node (see
  // ResolveForwarded). The same for a repeated metadata key, and for a certificate that a relay
  // names.
  absl::StatusOr<std::shared_ptr<const Caller>> Resolve(
      const grpc::AuthContext& context,
      const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

  // A node or relay for which a relay acts.
  struct ForwardedCaller {
    std::shared_ptr<const Caller> caller;
    absl::Time expires;  // of the statement
    std::string parent;  // the name of the relay that the statement names
  };

  // Returns the node with this URI, for which `relay` acts with a serialised attach statement, as
  // Resolve does: for messages that contain many nodes. IDENTITY_NOT_FORWARDABLE; NOT_ATTACHED if
  // the node has signed a newer statement for another parent, which this object has verified. A
  // former parent can therefore act for a node only until then, and never longer than the statement
  // for it is valid.
  absl::StatusOr<ForwardedCaller> ResolveForwarded(const Caller& relay, std::string_view uri,
                                                   std::string_view statement);

  // Returns the relay with this name, which is attached to a parent by a serialised attach
  // statement, as above: `ancestor` forwards a stream of this relay.
  absl::StatusOr<ForwardedCaller> ResolveForwardedRelay(const Caller& ancestor,
                                                        const std::string& name,
                                                        std::string_view statement);

  // Returns whether ResolveForwarded and ResolveForwardedRelay refuse a statement of the child with
  // this URI for `relay` that expires at `expires`, because a newer one names another parent.
  bool HasMoved(std::string_view child, std::string_view relay, absl::Time expires) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The content of a certificate: the caller of every call of its connection that forwards nothing.
  struct Peer {
    std::shared_ptr<const Caller> caller;
    absl::Time not_after;
  };

  // The content of a verified statement.
  struct Statement {
    Identity child;
    std::string relay;
    std::string issuer;
    std::string serial;
    absl::Time expires;
  };

  struct Newest {
    std::string relay;
    absl::Time expires;
  };

  static bool Supersedes(const Newest& newest, std::string_view relay, absl::Time expires);
  absl::StatusOr<ForwardedCaller> ResolveChild(const Caller& relay, Identity child,
                                               std::string_view statement);
  absl::StatusOr<Peer> PeerOf(const grpc::AuthContext& context) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Peer> Read(std::string_view pem) const;
  absl::StatusOr<Statement> StatementOf(std::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Statement> VerifyStatement(std::string_view bytes) const;
  void Remember(std::string digest, const Statement& statement) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps the statement if it is the newest of the child. Returns whether the child has moved.
  bool IsSuperseded(const std::string& child, const Statement& statement)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string fleet_;
  const Clock& clock_;
  VerifiedChains* const chains_;
  const RememberedCallers limits_;
  mutable Mutex mutex_;
  // By certificate, so that a connection's certificate is parsed once and not for each call.
  absl::flat_hash_map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  // By SHA-256 of the statement's bytes, for the same reason.
  absl::flat_hash_map<std::string, Statement> statements_ ABSL_GUARDED_BY(mutex_);
  // The newest statement of each node and relay, by its URI.
  absl::flat_hash_map<std::string, Newest> newest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALLER_H_
