// The peer of a connection, as records and limits name it.
#ifndef MUSTER_SERVICES_COMMON_RPC_PEER_H_
#define MUSTER_SERVICES_COMMON_RPC_PEER_H_

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <string>

namespace muster {

// Returns the URI in the certificate of the peer; empty without one.
inline std::string PeerUri(const grpc::AuthContext& context) {
  const auto uris = context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME);
  return uris.empty() ? "" : std::string(uris[0].data(), uris[0].size());
}

// Returns what grpc::ServerContext::peer returns, without the port, which each connection changes.
inline std::string PeerAddress(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_PEER_H_
