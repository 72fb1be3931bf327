// Delivers as legacy sidecars do: by HTTPS PUT to the run's listener.
#ifndef MUSTER_SERVICES_CLIENT_HTTPS_TRANSPORT_H_
#define MUSTER_SERVICES_CLIENT_HTTPS_TRANSPORT_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/client/https_request.h"
#include "services/client/result_transport.h"

namespace muster::client {

// Sends the whole file in each attempt (the listener keeps received bytes but cannot report their
// number). Sends an error result as the JSON object {"error": "..."}, as legacy sidecars do.
std::unique_ptr<ResultTransport> MakeHttpsTransport(HttpsOptions options);

// The response of a listener.
struct RelayedAnswer {
  int code = 0;
  std::string body;  // the first 4 KiB
  // The response as an error of the API; OK for 200.
  absl::Status status;
};

// POSTs a progress report (a JSON object) unchanged, in one attempt of at most 10 s.
absl::StatusOr<RelayedAnswer> RelayProgress(const HttpsOptions& options, std::string_view plugin,
                                            std::string_view node, const std::string& body);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HTTPS_TRANSPORT_H_
