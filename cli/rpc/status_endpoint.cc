#include "cli/rpc/status_endpoint.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/identity/certificate.h"

namespace muster::cli {
namespace {

// Returns the fleet in the URI of a run's credential, "spiffe://RUN.FLEET/viewer"; "unknown" if the
// certificate is not one of those, which no gateway accepts either.
std::string FleetOf(std::string_view certificate_pem) {
  const auto certificate = Certificate::FromPem(certificate_pem);
  const auto uri = certificate.ok() ? certificate->Uri() : certificate.status();
  if (!uri.ok()) return "unknown";
  std::string_view domain = *uri;
  domain.remove_prefix(std::min(domain.size(), domain.find("://") + 3));
  domain = domain.substr(0, domain.find('/'));
  const size_t dot = domain.find('.');
  return dot == std::string_view::npos ? "unknown" : std::string(domain.substr(dot + 1));
}

}  // namespace

StatusEndpoint::StatusEndpoint(const StatusCredentials& credentials)
    : url_(credentials.StatusUrl()),
      https_(credentials.ca_cert, credentials.client_cert, credentials.client_key.view(),
             HttpsClient::GatewayOf{FleetOf(credentials.client_cert), /*or_none=*/true}) {}

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
