// The records of identities as plain values (records.h): certificates, join tokens, nodes.
#ifndef MUSTER_SERVICES_COMMON_STORE_IDENTITY_RECORDS_H_
#define MUSTER_SERVICES_COMMON_STORE_IDENTITY_RECORDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster {

struct RevocationRecord {
  std::string subject;  // a URI, or "<issuer key id hex>:<serial hex>"
  std::string reason;
  std::string revoked_by;
  int64_t at = 0;
};

// A certificate that the aggregator signed for a user, a service, a sidecar or a node.
struct IssuedRecord {
  std::string uri;
  std::string issuer;     // issuer key id, hex
  std::string serial;     // hex
  std::string issued_to;  // URI of the caller
  int64_t issued_at = 0;
  int64_t expires_at = 0;
};

// A certificate is kept for this long after its expiry, in microseconds.
inline constexpr int64_t kIssuedKept = int64_t{7} * 24 * 3600 * 1'000'000;

// The limit of certificates that an identity gets by renewal within a time, in microseconds. It
// bounds the work of a revocation, which names every valid certificate.
inline constexpr int kMaxRenewals = 60;
inline constexpr int64_t kRenewalWindow = int64_t{3600} * 1'000'000;

// The limit of join tokens.
inline constexpr int kMaxJoinTokens = 1'000;

// The limit of names in the list of nodes that joined with a token.
inline constexpr int kListedJoins = 20;

using Labels = std::map<std::string, std::string>;

// A token with which machines join the fleet.
struct JoinTokenRecord {
  std::string id;
  std::string public_key_pem;
  std::string node;   // the only node that may join with it; empty: any
  int32_t count = 1;  // the number of nodes that may join
  Labels labels;      // for the nodes that join
  std::string created_by;
  int64_t created_at = 0;
  int64_t expires_at = 0;
  bool revoked = false;
  std::vector<std::string> joined;  // the last kListedJoins, in that order
  int32_t joined_count = 0;
  bool relay = false;                // for a relay
  std::vector<std::string> parents;  // names of the parent relays, preferred first
};

// An enrolled node, or a relay: they share one register of names.
struct NodeRecord {
  std::string name;
  std::string uri;
  Labels labels;
  int64_t joined_at = 0;
  std::string join_token;  // the last token it joined with
  int64_t expires_at = 0;  // of its newest certificate; 0: long ago
  int64_t revoked_at = 0;  // 0: not revoked
  std::string revoke_reason;
  std::string revoked_by;  // URI of the operator
  bool relay = false;
  std::vector<std::string> relay_targets;  // "host:port", only of a relay, from its last join
  std::vector<std::string> join_targets;   // "host:port", only of a relay
  std::vector<std::string> parents;        // from its last token
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_IDENTITY_RECORDS_H_
