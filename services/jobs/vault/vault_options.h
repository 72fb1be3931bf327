// Where the secrets of a Vault are, and how the jobs service logs in to it.
#ifndef MUSTER_SERVICES_JOBS_VAULT_VAULT_OPTIONS_H_
#define MUSTER_SERVICES_JOBS_VAULT_VAULT_OPTIONS_H_

#include <string>

#include "absl/time/time.h"

namespace muster {

struct VaultOptions {
  std::string address;             // "https://HOST:PORT"; empty: no Vault
  std::string space;               // its namespace; empty: none
  std::string ca_file;             // PEM; empty: the CAs of the system
  std::string mount = "secret";    // of a key-value engine, version 2
  std::string method = "approle";  // or "cert"
  std::string auth_mount;          // of the method; empty: its name
  // For "approle".
  std::string role_id_file;
  std::string secret_id_file;
  // The path at which the secret id was created, if the file has a wrapping token instead of it.
  std::string secret_id_wrapping_path;
  // For "cert": PEM, and the role; empty: the server chooses one.
  std::string certificate_file;
  std::string key_file;
  std::string certificate_role;
  absl::Duration wrap_ttl;  // of the answers with values; zero: they are not wrapped
  absl::Duration timeout = absl::Seconds(5);
  std::string unwrapped_file;  // keeps the secret id that was unwrapped, 0600
};

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_VAULT_VAULT_OPTIONS_H_
