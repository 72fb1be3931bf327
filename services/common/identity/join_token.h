// Join tokens: the file with which a machine joins as a node or a relay, and the signatures that
// prove its possession.
//
//   {
//     "fleet": "fleet-0a1b2c3d.muster",
//     "id": "0123456789abcdef0123456789abcdef",
//     "kind": "node",                        or "relay"
//     "node": "n1",                          "*" for any
//     "expires_at": "2026-11-21T10:00:00Z",
//     "join_targets": ["10.0.0.5:7443"],
//     "fleet_ca_pem": "-----BEGIN CERTIFICATE-----...",
//     "command_ca_pem": "-----BEGIN CERTIFICATE-----...",
//     "private_key_pem": "-----BEGIN PRIVATE KEY-----..."
//   }
//
// The file is a secret: its holder may join until the token expires or has no uses left. Its
// private key never leaves the file: the fleet stores the public key, and each request is signed.
// The file contains the fleet's root and command authority, so that a joining machine trusts only
// these from its first connection on, even through a relay.
#ifndef MUSTER_SERVICES_COMMON_IDENTITY_JOIN_TOKEN_H_
#define MUSTER_SERVICES_COMMON_IDENTITY_JOIN_TOKEN_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/identity/key.h"
#include "services/common/identity/secret.h"

namespace muster {

struct JoinToken {
  std::string fleet;
  std::string id;
  bool relay = false;  // the machine joins as a relay
  std::string node;    // the only node that may join; empty: any
  absl::Time expires;
  std::vector<std::string> join_targets;  // "host:port"
  std::string fleet_ca_pem;
  std::string command_ca_pem;  // empty in files of versions without commands
  Secret private_key_pem;
};

// Fails with INVALID_ARGUMENT (INVALID_TOKEN_FILE) and the fault.
absl::StatusOr<JoinToken> ParseJoinToken(std::string_view json);

Secret JoinTokenToJson(const JoinToken& token);

// 32 lower-case hex digits.
bool IsJoinTokenId(std::string_view id);

// Return the texts that are signed; join.proto specifies them.
std::string JoinProofText(std::string_view token_id, std::string_view node,
                          std::string_view csr_pem);
std::string ReturnProofText(std::string_view csr_pem);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_JOIN_TOKEN_H_
