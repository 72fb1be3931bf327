// The verification of the server at the outer end of a tunnel.
#ifndef MUSTER_SERVICES_COMMON_TUNNEL_OUTER_TRUST_H_
#define MUSTER_SERVICES_COMMON_TUNNEL_OUTER_TRUST_H_

#include <openssl/ssl.h>

#include <string>

namespace muster {

// Returns "TLS verified by the root of the fleet" if the certificate of the peer leads to
// `fleet_root_pem`. Returns "TLS verified by the roots of this machine" if it leads to one of those
// and names `host`. Otherwise returns "TLS not verified: " with the issuer: printable ASCII, at
// most 100 bytes. Called after the handshake. Thread-safe.
std::string OuterTrust(SSL* ssl, const std::string& host, const std::string& fleet_root_pem);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TUNNEL_OUTER_TRUST_H_
