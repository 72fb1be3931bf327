// `GET /status` over HTTPS, with a credentials file and nothing else.
#ifndef MUSTER_CLI_RPC_STATUS_ENDPOINT_H_
#define MUSTER_CLI_RPC_STATUS_ENDPOINT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/rpc/credentials_file.h"
#include "cli/rpc/https_client.h"

namespace muster::cli {

// A kept connection to one status listener. Not thread-safe.
class StatusEndpoint {
 public:
  explicit StatusEndpoint(const StatusCredentials& credentials);

  // The JSON of the run with every pair. Errors as of HttpsClient::Get.
  absl::StatusOr<std::string> Get();

  // The same with only the pairs that a person looks at (stragglers, errors, progress); nothing if
  // it has not changed since the last call.
  absl::StatusOr<std::optional<std::string>> GetNews();

 private:
  const std::string url_;
  HttpsClient https_;
  std::string etag_;  // of the news that were told last
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_STATUS_ENDPOINT_H_
