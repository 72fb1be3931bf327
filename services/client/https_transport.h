// Delivery as old sidecars do it: HTTPS PUT to the run's listener.
#ifndef MUSTER_SERVICES_CLIENT_HTTPS_TRANSPORT_H_
#define MUSTER_SERVICES_CLIENT_HTTPS_TRANSPORT_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "services/client/https_request.h"
#include "services/client/result_transport.h"

namespace muster::client {

// The whole file goes in each try (the listener keeps what it got, but cannot say how much). An
// error result goes as the JSON object {"error": "..."}, as old sidecars send it.
std::unique_ptr<ResultTransport> MakeHttpsTransport(HttpsOptions options);

// What a listener answered.
struct RelayedAnswer {
  int code = 0;
  std::string body;  // its first 4 KiB
  // The same in the words of the API; OK for 200.
  absl::Status status;
};

// POSTs a progress report (a JSON object), as it is; one try of at most 10 s.
absl::StatusOr<RelayedAnswer> RelayProgress(const HttpsOptions& options, std::string_view plugin,
                                            std::string_view node, const std::string& body);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_HTTPS_TRANSPORT_H_
