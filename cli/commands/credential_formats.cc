#include "cli/commands/credential_formats.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "services/common/base/sha256.h"
#include "services/common/base/shell_quote.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxObjectName = 63;

Json TextList(const google::protobuf::RepeatedPtrField<std::string>& list) {
  Json json = Json::array();
  for (const std::string& text : list) json.push_back(text);
  return json;
}

// Returns the fields that are not secret. The certificate includes its chain to the fleet's root;
// legacy clients read only the first block.
Json PublicFields(const KeyedCredential& keyed) {
  const v1::Credential& credential = keyed.credential;
  Json json = {{"run", keyed.run}, {"plugin", keyed.plugin}};
  if (!keyed.node.empty()) json["node"] = keyed.node;
  json["grpc_targets"] = TextList(credential.grpc_targets());
  json["status_targets"] = TextList(credential.status_targets());
  if (!credential.legacy_urls().empty()) json["aggregator_url"] = credential.legacy_urls(0);
  json["fleet_ca_cert"] = credential.fleet_ca_pem();
  json["ca_cert"] = credential.run_ca_pem();
  json["client_cert"] = absl::StrCat(credential.certificate_pem(), credential.chain_pem());
  return json;
}

// Returns a YAML literal block, `indent` spaces deep.
std::string LiteralBlock(std::string_view text, int indent) {
  std::string out = "|\n";
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(ToAbsl(text), "\n"), '\n')) {
    absl::StrAppend(&out, std::string(indent, ' '), line, "\n");
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> AgentJson(const KeyedCredential& credential) {
  ASSIGN_OR_RETURN(const auto key, credential.key.ToSec1Pem());
  Json json = PublicFields(credential);
  json["client_key"] = std::string(key.view());
  return json.dump(2) + "\n";
}

absl::StatusOr<std::string> ShellEnvironment(const KeyedCredential& keyed) {
  ASSIGN_OR_RETURN(const auto key, keyed.key.ToSec1Pem());
  std::string out = absl::StrCat("# Credential for plugin ", keyed.plugin, " in run ", keyed.run,
                                 ", for a shell: . FILE\n");
  const auto add = [&out](std::string_view name, std::string_view value) {
    absl::StrAppend(&out, "export ", ToAbsl(name), "=", ShellQuoted(value), "\n");
  };
  const v1::Credential& credential = keyed.credential;
  const std::string url = credential.legacy_urls().empty() ? "" : credential.legacy_urls(0);
  add("AGGREGATOR_URL", url);
  add("MASTER_URL", url);
  add("RESULT_TYPE", keyed.plugin);
  if (!keyed.node.empty()) add("NODE_NAME", keyed.node);
  add("CA_CERT", credential.run_ca_pem());
  add("CLIENT_CERT", credential.certificate_pem());
  add("CLIENT_KEY", key.view());
  return out;
}

std::string KubernetesName(const KeyedCredential& credential) {
  const std::string whole =
      absl::StrCat(credential.run, "-", credential.plugin,
                   credential.node.empty() ? "" : absl::StrCat("-", credential.node));
  std::string name = absl::StrCat("muster-", absl::AsciiStrToLower(whole));
  for (char& c : name) {
    if (!absl::ascii_isalnum(c)) c = '-';
  }
  // A changed or cut name may equal that of another credential: append a digest.
  if (name != absl::StrCat("muster-", whole) || name.size() > kMaxObjectName) {
    const std::string digest =
        ToHex(Sha256::Of(absl::StrCat(credential.plugin, "/", credential.node))).substr(0, 8);
    name = absl::StrCat(name.substr(0, kMaxObjectName - digest.size() - 1), "-", digest);
  }
  return name;
}

absl::StatusOr<std::string> KubernetesObjects(const KeyedCredential& keyed) {
  ASSIGN_OR_RETURN(const auto key, keyed.key.ToSec1Pem());
  const std::string name = KubernetesName(keyed);
  Json config = PublicFields(keyed);
  config["client_key_file"] = absl::StrCat(kSecretMount, "/tls.key");
  const std::string certificate = config["client_cert"].get<std::string>();
  const v1::Credential& credential = keyed.credential;
  std::string environment;  // JSON strings are YAML
  const auto add = [&environment](std::string_view variable, const std::string& value) {
    absl::StrAppend(&environment, "  ", ToAbsl(variable), ": ", Json(value).dump(), "\n");
  };
  if (!credential.legacy_urls().empty()) add("AGGREGATOR_URL", credential.legacy_urls(0));
  add("RESULT_TYPE", keyed.plugin);
  if (!keyed.node.empty()) add("NODE_NAME", keyed.node);
  add("CA_CERT", credential.run_ca_pem());
  add("CLIENT_CERT", credential.certificate_pem());
  return absl::StrCat(
      "# Mount the Secret at ", kSecretMount,
      ", the ConfigMap anywhere: muster agent --config FILE.\n"
      "# A legacy sidecar takes its environment from both, by envFrom.\n",
      "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata:\n  name: ", name,
      "\nstringData:\n  tls.crt: ", LiteralBlock(certificate, 4),
      "  tls.key: ", LiteralBlock(key.view(), 4), "  CLIENT_KEY: ", LiteralBlock(key.view(), 4),
      "  ca.crt: ", LiteralBlock(keyed.credential.run_ca_pem(), 4),
      "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ", name, "\ndata:\n", environment,
      "  agent.json: ", LiteralBlock(config.dump(2), 4));
}

}  // namespace muster::cli
