#include "cli/rpc/status_endpoint.h"

#include <utility>

#include "services/common/base/status_macros.h"

namespace muster::cli {

StatusEndpoint::StatusEndpoint(const StatusCredentials& credentials)
    : url_(credentials.StatusUrl()),
      https_(credentials.ca_cert, credentials.client_cert, credentials.client_key.view()) {}

absl::StatusOr<std::string> StatusEndpoint::Get() {
  ASSIGN_OR_RETURN(auto answer, https_.Get(url_));
  return std::move(answer.body);
}

absl::StatusOr<std::optional<std::string>> StatusEndpoint::GetIfChanged() {
  ASSIGN_OR_RETURN(auto answer, https_.Get(url_ + "?only=attention", etag_));
  if (answer.unchanged) return std::nullopt;
  etag_ = std::move(answer.etag);
  return std::optional(std::move(answer.body));
}

}  // namespace muster::cli
