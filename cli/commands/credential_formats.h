// The formats of an exported credential.
#ifndef MUSTER_CLI_COMMANDS_CREDENTIAL_FORMATS_H_
#define MUSTER_CLI_COMMANDS_CREDENTIAL_FORMATS_H_

#include <string>

#include "absl/status/statusor.h"
#include "muster/v1/runs.pb.h"
#include "services/common/identity/key.h"

namespace muster::cli {

// A credential with its key.
struct KeyedCredential {
  std::string run;
  std::string plugin;
  std::string node;  // empty: any node of the plugin
  v1::Credential credential;
  PrivateKey key;
};

// Returns the agent's configuration file (docs/agent-config.schema.json), with the key.
absl::StatusOr<std::string> AgentJson(const KeyedCredential& credential);

// Returns lines for a shell, with the names of variables that legacy sidecars read. The key is
// SEC1, the only format that they load.
absl::StatusOr<std::string> ShellEnvironment(const KeyedCredential& credential);

// Returns a Secret (tls.crt, tls.key, ca.crt) and a ConfigMap with the agent's configuration
// without the key, in YAML. Pods mount the Secret at kSecretMount and the ConfigMap anywhere.
absl::StatusOr<std::string> KubernetesObjects(const KeyedCredential& credential);

inline constexpr char kSecretMount[] = "/etc/muster/credential";

// Returns the name of both objects: lower-case letters, digits and hyphens, at most 63 characters.
// Different credentials have different names.
std::string KubernetesName(const KeyedCredential& credential);

}  // namespace muster::cli

#endif  // MUSTER_CLI_COMMANDS_CREDENTIAL_FORMATS_H_
