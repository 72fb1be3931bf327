// The identity of callers: from the verified certificate, from the gateway that verified it, or
// from the statement that the node signed for its relay.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALLER_H_
#define MUSTER_SERVICES_COMMON_RPC_CALLER_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/string_ref.h>

#include <functional>
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
#include "services/common/identity/policy.h"
#include "services/common/rpc/forwarding.h"

namespace muster {

// Thread-safe.
class CallerResolver {
 public:
  // The fleet's roots as they are now: what a node's certificate in a statement has to lead to. It
  // is asked from any thread and must not wait.
  using Roots = std::function<std::vector<Certificate>()>;

  // Without `roots` nothing that a relay forwards is accepted.
  CallerResolver(std::string fleet, const Clock& clock, Roots roots = nullptr)
      : fleet_(std::move(fleet)), clock_(clock), roots_(std::move(roots)) {}

  // Returns the caller of an RPC. UNAUTHENTICATED without exactly one URI in the certificate of the
  // peer, or if the certificate has expired since the connection was made (CERTIFICATE_EXPIRED).
  // PERMISSION_DENIED (IDENTITY_NOT_FORWARDABLE) if the peer may not forward the identity: only
  // gateways and relays forward any, and a relay needs the live attach statement of a node. The
  // same for a repeated metadata key.
  absl::StatusOr<std::shared_ptr<const Caller>> Resolve(
      const grpc::AuthContext& context,
      const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

  // The node with this URI, for whom `relay` speaks by a message that carries many: as Resolve, for
  // one of them. `until`: when its statement ends.
  struct Spoken {
    std::shared_ptr<const Caller> caller;
    absl::Time until;
    std::string below;  // the relay that the statement is for: its name
  };
  absl::StatusOr<Spoken> SpokenFor(const Caller& relay, std::string_view uri,
                                   std::string_view statement);

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

  absl::StatusOr<Peer> PeerOf(const grpc::AuthContext& context) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Peer> Read(std::string_view pem) const;
  absl::StatusOr<Statement> StatementOf(std::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Statement> VerifyStatement(std::string_view bytes) const;
  void Remember(std::string digest, const Statement& statement) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string fleet_;
  const Clock& clock_;
  const Roots roots_;
  Mutex mutex_;
  // By certificate, so that a connection's certificate is parsed once and not for each call.
  absl::flat_hash_map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  // By SHA-256 of the statement's bytes, for the same reason.
  absl::flat_hash_map<std::string, Statement> statements_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALLER_H_
