// `GET /status` over HTTPS with a credentials file.
#ifndef MUSTER_CLI_RPC_STATUS_ENDPOINT_H_
#define MUSTER_CLI_RPC_STATUS_ENDPOINT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/rpc/credentials_file.h"
#include "cli/rpc/https_client.h"

namespace muster::cli {

// A client of one status listener that reuses its connection. Not thread-safe.
class StatusEndpoint {
 public:
  explicit StatusEndpoint(const StatusCredentials& credentials);

  // Returns the JSON of the run with every pair. The errors are those of HttpsClient::Get.
  absl::StatusOr<std::string> Get();

  // Returns the JSON with only the pairs that need attention (stragglers, errors, progress), or
  // nothing if it has not changed since the last call.
  absl::StatusOr<std::optional<std::string>> GetIfChanged();

 private:
  const std::string url_;
  HttpsClient https_;
  std::string etag_;  // of the last JSON that GetIfChanged returned
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_STATUS_ENDPOINT_H_
