#include "services/common/identity/join_token.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "services/common/base/error.h"
#include "services/common/base/names.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/joining.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/identity/json_fields.h"

namespace muster {
namespace {

constexpr char kAnyNode[] = "*";
constexpr char kNodeKind[] = "node";
constexpr char kRelayKind[] = "relay";

std::string HexDigest(std::string_view text) { return ToHex(Sha256::Of(text)); }

absl::Status Check(const JoinToken& token) {
  if (absl::Status s = CheckFleet(token.fleet); !s.ok())
    return errors::InvalidTokenFile(ToStd(s.message()));
  if (!IsJoinTokenId(token.id)) return errors::InvalidTokenFile("\"id\" is not the id of a token");
  if (!token.node.empty()) {
    const absl::Status name = ValidateName("node", token.node);
    if (!name.ok()) return errors::InvalidTokenFile(ToStd(name.message()));
  }
  if (token.join_targets.empty())
    return errors::InvalidTokenFile("\"join_targets\" names no address");
  const auto root = Certificate::FromPem(token.fleet_ca_pem);
  if (!root.ok())
    return Annotate(errors::InvalidTokenFile(ToStd(root.status().message())), "fleet_ca_pem");
  if (!token.command_ca_pem.empty()) {
    const auto commands = Certificate::FromPem(token.command_ca_pem);
    if (!commands.ok()) {
      return Annotate(errors::InvalidTokenFile(ToStd(commands.status().message())),
                      "command_ca_pem");
    }
  }
  const auto key = PrivateKey::FromPem(token.private_key_pem.view());
  if (!key.ok())
    return Annotate(errors::InvalidTokenFile(ToStd(key.status().message())), "private_key_pem");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JoinToken> ParseJoinToken(std::string_view json) {
  JsonFields fields(json);
  JoinToken token;
  std::string kind = kNodeKind;
  std::string expires;
  std::string key;
  fields.Text("fleet", &token.fleet);
  fields.Text("id", &token.id);
  fields.OptionalText("kind", &kind);
  fields.Text("node", &token.node);
  fields.Text("expires_at", &expires);
  fields.List("join_targets", &token.join_targets);
  fields.Text("fleet_ca_pem", &token.fleet_ca_pem);
  fields.OptionalText("command_ca_pem", &token.command_ca_pem);
  fields.Text("private_key_pem", &key);
  token.private_key_pem = Secret(std::move(key));
  if (const std::string fault = fields.Fault(); !fault.empty())
    return errors::InvalidTokenFile(fault);
  if (!absl::ParseTime(absl::RFC3339_full, expires, &token.expires, nullptr)) {
    return errors::InvalidTokenFile("\"expires_at\" is not a time");
  }
  if (kind != kNodeKind && kind != kRelayKind)
    return errors::InvalidTokenFile("\"kind\" is not node or relay");
  token.relay = kind == kRelayKind;
  if (token.node == kAnyNode) token.node.clear();
  RETURN_IF_ERROR(Check(token));
  return token;
}

Secret JoinTokenToJson(const JoinToken& token) {
  nlohmann::ordered_json json;
  json["fleet"] = token.fleet;
  json["id"] = token.id;
  json["kind"] = token.relay ? kRelayKind : kNodeKind;
  json["node"] = token.node.empty() ? kAnyNode : token.node;
  json["expires_at"] = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", token.expires, absl::UTCTimeZone());
  json["join_targets"] = token.join_targets;
  json["fleet_ca_pem"] = token.fleet_ca_pem;
  if (!token.command_ca_pem.empty()) json["command_ca_pem"] = token.command_ca_pem;
  json["private_key_pem"] = std::string(token.private_key_pem.view());
  return Secret(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

bool IsJoinTokenId(std::string_view id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string JoinProofText(std::string_view token_id, std::string_view node,
                          std::string_view csr_pem) {
  return absl::StrCat("muster-join-v1\n", ToAbsl(token_id), "\n", ToAbsl(node), "\n",
                      HexDigest(csr_pem), "\n");
}

std::string ReturnProofText(std::string_view csr_pem) {
  return absl::StrCat("muster-return-v1\n", HexDigest(csr_pem), "\n");
}

}  // namespace muster
