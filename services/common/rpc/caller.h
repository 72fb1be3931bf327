// Who calls: from the verified certificate, and behind the gateway from what the gateway verified.
#ifndef MUSTER_SERVICES_COMMON_RPC_CALLER_H_
#define MUSTER_SERVICES_COMMON_RPC_CALLER_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/string_ref.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/clock.h"
#include "services/common/identity/policy.h"

namespace muster {

// The metadata key in which the gateway names the verified URI of its own client.
inline constexpr char kForwardedIdentity[] = "muster-forwarded-identity";

// Thread-safe.
class CallerResolver {
 public:
  CallerResolver(std::string fleet, const Clock& clock) : fleet_(std::move(fleet)), clock_(clock) {}

  // The caller of an RPC. UNAUTHENTICATED without exactly one URI in the peer's certificate, or if
  // the certificate has ended since the connection was made (CERTIFICATE_EXPIRED);
  // PERMISSION_DENIED (IDENTITY_NOT_FORWARDABLE) if somebody other than a gateway forwards an
  // identity, or if the key is there more than once.
  absl::StatusOr<std::shared_ptr<const Caller>> Resolve(
      const grpc::AuthContext& context,
      const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

 private:
  // What a certificate says: the caller of every call of its connection that forwards nothing.
  struct Peer {
    std::shared_ptr<const Caller> caller;
    absl::Time not_after;
  };

  absl::StatusOr<Peer> PeerOf(const grpc::AuthContext& context);
  absl::StatusOr<Peer> Read(std::string_view pem) const;

  const std::string fleet_;
  const Clock& clock_;
  std::mutex mutex_;
  // By certificate, so that a connection's certificate is parsed once and not for each call.
  absl::flat_hash_map<std::string, Peer> peers_;  // guarded by mutex_
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CALLER_H_
