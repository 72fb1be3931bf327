// A real TLS 1.3 handshake between two OpenSSL ends in memory, for tests of certificates.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_TLS_HANDSHAKE_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_TLS_HANDSHAKE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"

namespace muster {

struct TlsEnd {
  // The sent chain: leaf first.
  std::vector<Certificate> chain;
  PrivateKey key;
  // The trusted roots.
  std::vector<Certificate> roots;
  // On a client: the expected host; empty: any.
  std::string host;
};

struct HandshakeOutcome {
  // The reason why an end refused the other's certificate; empty if it did not.
  std::string server_refused;
  std::string client_refused;
  bool ok = false;
};

// Both ends request and verify the other's certificate at `now`.
HandshakeOutcome Handshake(const TlsEnd& server, const TlsEnd& client, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_TLS_HANDSHAKE_H_
