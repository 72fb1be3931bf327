// Join tokens: the file with which a machine becomes a node or a relay, and the proofs that joining
// asks for.
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
// It is a secret: who has it may join until it ends or is used up. Its key never leaves the file;
// the fleet knows the public half, and each request is signed with it. The fleet's root and its
// command authority are in the file too, so that a machine that joins trusts nobody else from the
// first connection on, also not a relay through which it joins.
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
  bool relay = false;  // who joins becomes a relay
  std::string node;    // the only one that may join; empty: any
  absl::Time expires;
  std::vector<std::string> join_targets;  // "host:port"
  std::string fleet_ca_pem;
  std::string command_ca_pem;  // empty in a file from before there were commands
  Secret private_key_pem;
};

// INVALID_ARGUMENT (INVALID_TOKEN_FILE) with what is wrong.
absl::StatusOr<JoinToken> ParseJoinToken(std::string_view json);

Secret JoinTokenToJson(const JoinToken& token);

// 32 lower-case hex digits.
bool IsJoinTokenId(std::string_view id);

// The texts that are signed; join.proto states them.
std::string JoinProofText(std::string_view token_id, std::string_view node,
                          std::string_view csr_pem);
std::string ReturnProofText(std::string_view csr_pem);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_IDENTITY_JOIN_TOKEN_H_
