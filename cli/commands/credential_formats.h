// The forms in which a credential is handed over.
#ifndef MUSTER_CLI_COMMANDS_CREDENTIAL_FORMATS_H_
#define MUSTER_CLI_COMMANDS_CREDENTIAL_FORMATS_H_

#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/runs.pb.h"
#include "services/common/identity/key.h"

namespace muster::cli {

// A credential with the key it was issued for.
struct KeyedCredential {
  std::string run;
  std::string plugin;
  std::string node;  // empty: any node of the plugin
  v1::Credential credential;
  PrivateKey key;
};

// The agent's configuration file (docs/agent-config.schema.json), with the key in it.
absl::StatusOr<std::string> AgentJson(const KeyedCredential& credential);

// Lines for a shell to read, under the names that old sidecars know; the key is SEC1, which is all
// they load.
absl::StatusOr<std::string> ShellEnvironment(const KeyedCredential& credential);

// A Secret (tls.crt, tls.key, ca.crt) and a ConfigMap with the agent's configuration without key,
// in YAML. They are to be mounted at kSecretMount and wherever the agent is told.
absl::StatusOr<std::string> KubernetesObjects(const KeyedCredential& credential);

inline constexpr char kSecretMount[] = "/etc/muster/credential";

// The name of both objects: lower-case letters, digits and hyphens, at most 63 characters; two
// credentials never share one.
std::string KubernetesName(const KeyedCredential& credential);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_CREDENTIAL_FORMATS_H_
