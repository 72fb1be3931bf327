// The commands of a StateStore (commands.h) about certificates, join tokens and nodes.
#ifndef MUSTER_SERVICES_COMMON_STORE_IDENTITY_COMMANDS_H_
#define MUSTER_SERVICES_COMMON_STORE_IDENTITY_COMMANDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "services/common/store/records.h"

namespace muster {

struct Revoke {
  RevocationRecord revocation;

  struct Result {
    bool changed = false;  // false: it was already revoked
  };
};

// Records a certificate. `node` is the name of an enrolled node, otherwise empty: the certificate
// must be handed out only if the node is still enrolled. A revoked URI gets no certificate. The
// audit log contains every certificate except renewals of nodes, which would soon fill it.
struct RecordIssued {
  IssuedRecord issued;
  std::string node;
  // The subject (RevocationRecord) of the certificate that is renewed; empty: none is. A revoked
  // one is not renewed, and an identity gets at most kMaxRenewals certificates within
  // kRenewalWindow.
  std::string renewed;
  std::string vouched_by = {};  // of `issued.issued_to`, as in Actor
  bool of_operator = false;     // the feed tells other services of it

  enum class Verdict { kRecorded, kNotEnrolled, kRevoked, kTooMany };
  struct Result {
    Verdict verdict = Verdict::kRecorded;
  };
};

// Creates a join token. Also deletes tokens that expired more than a week ago.
struct CreateJoinToken {
  JoinTokenRecord token;

  enum class Verdict { kCreated, kExists, kTooMany, kNodeRevoked, kNoRelay };
  struct Result {
    Verdict verdict = Verdict::kCreated;
    std::string relay;  // kNoRelay: the parent that is not in the register, or is revoked
  };
};

struct RevokeJoinToken {
  std::string id;
  Actor actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
  };
};

// Enrols a node (or a relay, if the token is for a relay). If it was enrolled before, its earlier
// certificates are revoked. The certificate was signed before; it is handed out only with kJoined.
struct JoinNode {
  std::string token;
  std::string name;
  std::string key_sha256;  // of the certified key; identifies a repeated request
  std::string certificate_chain_pem;
  IssuedRecord issued;                     // its uri and `at`
  std::vector<std::string> relay_targets;  // only of a relay
  std::vector<std::string> join_targets;

  enum class Verdict {
    kJoined,
    kAgain,    // the same key and token: returns the issued certificate
    kNoToken,  // the token does not exist or was revoked
    kExpired,
    kUsed,       // by other keys
    kOtherNode,  // the token or the key is for another name
    kEnrolled,   // an enrolled name of the other kind, or not in the token
    kRevoked,    // the node is revoked
  };
  struct Result {
    Verdict verdict = Verdict::kNoToken;
    std::string certificate_chain_pem;
  };
};

struct LabelNode {
  std::string name;
  Labels set;
  std::vector<std::string> remove;
  size_t max_labels = 0;
  Actor actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
    bool too_many = false;  // nothing changed
  };
};

// Revokes every unexpired certificate of the node, which gets no new one.
struct RevokeNode {
  std::string name;
  std::string reason;
  Actor actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
  };
};

// Revokes the node as RevokeNode does, and releases its name.
struct RemoveNode {
  std::string name;
  Actor actor;
  int64_t at = 0;

  struct Result {
    bool found = false;
  };
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_STORE_IDENTITY_COMMANDS_H_
