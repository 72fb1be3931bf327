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
  // What it sends: leaf first.
  std::vector<Certificate> chain;
  PrivateKey key;
  // What it trusts.
  std::vector<Certificate> roots;
  // On a client: the host it wants, or nothing to check.
  std::string host;
};

struct HandshakeOutcome {
  // Why an end refused the other's certificate; empty if it did not.
  std::string server_refused;
  std::string client_refused;
  bool ok = false;
};

// Both ends ask for and check the other's certificate as of `now`.
HandshakeOutcome Handshake(const TlsEnd& server, const TlsEnd& client, absl::Time now);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_TLS_HANDSHAKE_H_
