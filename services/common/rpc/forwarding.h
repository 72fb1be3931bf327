// The metadata with which a service calls on behalf of its client.
#ifndef MUSTER_SERVICES_COMMON_RPC_FORWARDING_H_
#define MUSTER_SERVICES_COMMON_RPC_FORWARDING_H_

#include <grpcpp/support/string_ref.h>

#include <map>
#include <optional>
#include <string>

namespace muster {

// The verified URI of that client; once. From a gateway, or from a relay for a node.
inline constexpr char kForwardedIdentity[] = "muster-forwarded-identity";

// Only from a gateway, in addition, for a URI that many clients share: "<issuer key id>:<serial>"
// of the client's certificate.
inline constexpr char kForwardedCertificate[] = "muster-forwarded-certificate";

// From a relay, in addition: the serialised AttachStatement of that node.
inline constexpr char kAttachStatement[] = "muster-attach-statement-bin";

// From a relay that forwards the heartbeat stream of a descendant relay: the serialised
// AttachStatement of that relay. It proves whose stream this is; the caller is the sending relay.
inline constexpr char kRelayStatement[] = "muster-relay-statement-bin";

// Returns the client for which the peer of a call that CallerResolver has accepted calls, if any:
// its URI, and its certificate if the peer names it.
inline std::optional<std::string> ForwardedClient(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  const auto uri = metadata.find(kForwardedIdentity);
  if (uri == metadata.end()) return std::nullopt;
  std::string client(uri->second.data(), uri->second.size());
  if (const auto certificate = metadata.find(kForwardedCertificate);
      certificate != metadata.end()) {
    client.append(" ").append(certificate->second.data(), certificate->second.size());
  }
  return client;
}

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_FORWARDING_H_
