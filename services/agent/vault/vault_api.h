// The answers of a server with Vault's protocol that has the secrets of one container.
#ifndef MUSTER_SERVICES_AGENT_VAULT_VAULT_API_H_
#define MUSTER_SERVICES_AGENT_VAULT_VAULT_API_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "services/common/identity/secret.h"

namespace muster {

// The entry with all secrets, for clients: VAULT_PATH. One secret is at kVaultPath/NAME.
inline constexpr std::string_view kVaultPath = "secret/deployment";

struct VaultApiSecret {
  std::string name;
  int64_t version = 0;
  Secret value;
};

struct VaultApiRequest {
  std::string_view method;
  std::string_view target;  // of HTTP, such as "/v1/secret/data/deployment"
  std::string_view token;
  bool wants_wrapping = false;
};

struct VaultApiAnswer {
  int status = 0;
  std::string body;               // JSON; the caller wipes it
  std::vector<std::string> read;  // the names of the secrets whose values it has
};

// A key-value engine of version 2, "secret", for the owner of a token: reads of the entry
// "deployment", whose fields are the secrets, of "deployment/NAME" with the field "value", and the
// list of these names; auth/token/lookup-self, and the description of the engine, which clients
// read first. Everything else is refused as
// Vault refuses it: 403, or 404. Values that are no
// UTF-8 are only in their files. Thread-safe.
class VaultApi {
 public:
  struct Options {
    std::string token;
    std::string job;
    std::string deployment;
    absl::Time created;  // of the token and the secrets
    absl::Time expires;  // of the token
    std::vector<VaultApiSecret> secrets;
  };
  explicit VaultApi(Options options) : options_(std::move(options)) {}

  VaultApiAnswer Handle(const VaultApiRequest& request, absl::Time now) const;

 private:
  VaultApiAnswer Read(std::string_view path, std::string_view query) const;
  VaultApiAnswer List(std::string_view path) const;
  VaultApiAnswer DescribeEngine(std::string_view path) const;
  VaultApiAnswer DescribeToken(absl::Time now) const;
  nlohmann::json Metadata(int64_t version) const;

  Options options_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_VAULT_VAULT_API_H_
